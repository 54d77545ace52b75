var e = class {
	random;
	attempt = 0;
	constructor(e = Math.random) {
		this.random = e;
	}
	next() {
		let e = Math.min(3e4, 3e3 * 2 ** Math.min(this.attempt, 10));
		return this.attempt++, this.random() * e;
	}
	reset() {
		this.attempt = 0;
	}
}, t = 4, n = 12e3;
async function r(r, i, a, o) {
	let s = `${r}/orders/${a.id}`, c = `?sale=${a.sale}`, l = { Authorization: `Bearer ${i}` }, u = new e();
	for (let e = 1;; e++) {
		let r = 0;
		try {
			let e = (e, t) => fetch(e, {
				method: t,
				headers: l,
				signal: AbortSignal.timeout(n)
			}), t = await e(`${s}/${o}${c}`, "POST");
			if (t.status === 409 && (t = await e(s + c, "GET")), t.ok) return await t.json();
			if (t.status < 500 && t.status !== 429) return "refused";
			r = Number(t.headers.get("Retry-After")) * 1e3;
		} catch {}
		if (e === t) return "unanswered";
		let i = Math.max(r, u.next());
		await new Promise((e) => setTimeout(e, i));
	}
}
// src/clock.ts
var i = class {
	steady;
	offset;
	constructor(e = () => performance.now()) {
		this.steady = e;
	}
	sample(e) {
		let t = e - this.steady();
		(this.offset === void 0 || t > this.offset || t < this.offset - 5e3) && (this.offset = t);
	}
	reset() {
		this.offset = void 0;
	}
	now() {
		return this.offset === void 0 ? Date.now() : this.steady() + this.offset;
	}
};
// src/protocol.ts
function a(e) {
	return e.status === "reserved" || e.status === "confirmed" || e.status === "paid";
}
function o(e) {
	return e >= 4400 && e <= 4407 || e === 4409;
}
// src/state.ts
var s = {
	link: "idle",
	view: { name: "connecting" },
	at: 0,
	fresh: !1
};
function c(e, t) {
	switch (t.type) {
		case "welcome": return l(e, t);
		case "lobby": return u(e, t.at) || p(e) ? e : m(e, t.at, {
			name: "lobby",
			...w(t)
		});
		case "queued": return u(e, t.at) || p(e) ? e : m({
			...e,
			number: t.number,
			jump: f(e, t)
		}, t.at, {
			name: "queued",
			...w(t)
		});
		case "turn": return _(e, t);
		case "success":
		case "already":
		case "order": return y(e, t);
		case "sold_out": return b(e, t);
		case "no_turn": return t.id === e.pending?.id ? {
			...e,
			pending: void 0,
			notice: { kind: "noTurn" }
		} : e;
		case "not_open": return t.id === e.pending?.id ? {
			...e,
			pending: void 0,
			notice: {
				kind: "notOpen",
				state: t.state
			}
		} : e;
		case "missed": return S(e, t.at, {
			name: "missed",
			why: t.why ?? "expired"
		});
		case "none": return x(e, t.at);
		case "closed": return S({
			...e,
			pause: void 0
		}, t.at, { name: "closed" });
		case "paused": {
			let n = e.view.name === "connecting" ? { name: "paused" } : e.view;
			return {
				...e,
				view: n,
				pause: t.why ?? "operator"
			};
		}
		case "resumed": return {
			...e,
			pause: void 0
		};
		case "limited": return {
			...e,
			notice: { kind: "limited" }
		};
		case "error": return C(e, t);
		default: return e;
	}
}
function l(e, t) {
	let n = t.sale.state === "paused" ? "operator" : t.sale.state === "recovering" ? "recovering" : void 0;
	return {
		...e,
		link: "open",
		sale: t.sale,
		user: t.user,
		number: t.number,
		payment: t.payment,
		pause: n,
		notice: void 0,
		at: 0,
		fresh: !0
	};
}
function u(e, t) {
	if (e.fresh) return !1;
	let n = e.view.name === "queued" || e.view.name === "lobby", r = e.view.name === "soldOut" && e.view.stock === "held";
	return t < e.at || t === e.at && !n && !r;
}
var d = 2e4;
function f(e, t) {
	return t.reason ? {
		why: t.reason,
		at: t.at
	} : e.jump && t.at - e.jump.at < d ? e.jump : void 0;
}
function p(e) {
	return !e.fresh && e.view.name === "order" && a(e.view.order);
}
function m(e, t, n) {
	let r = e.notice?.kind === "orderEnded" && n.name !== "order";
	return {
		...e,
		at: t,
		view: n,
		notice: r ? e.notice : void 0,
		fresh: !1
	};
}
function h({ view: e }) {
	return e.name === "lobby" || e.name === "queued" || e.name === "turn";
}
function g(e) {
	return e === "cancelled" || e === "expired" || e === "rejected";
}
function _(e, t) {
	if (t.at < e.at || p(e)) return e;
	let n = e.view.name === "turn" ? e.view.began : t.at;
	return m(e, t.at, {
		name: "turn",
		began: n,
		...w(t)
	});
}
var v = {
	reserved: 0,
	confirmed: 1,
	paid: 2,
	cancelled: 3,
	expired: 3,
	rejected: 3
};
function y(e, t) {
	let n = e.view.name === "order" ? e.view : void 0, r = t.id !== void 0 && t.id === e.pending?.id, i = r || a(t.order) ? void 0 : e.pending;
	if (n && n.order.id === t.order.id) {
		if (v[t.order.status] < v[n.order.status]) return {
			...e,
			pending: i
		};
		let r = {
			...n,
			order: {
				...n.order,
				...t.order
			}
		};
		return {
			...m(e, Math.max(e.at, t.at), r),
			pending: i
		};
	}
	if (n && a(n.order) && !a(t.order)) return {
		...e,
		pending: i
	};
	if (!r && g(t.order.status) && h(e) && !e.fresh) return {
		...e,
		pending: i,
		notice: {
			kind: "orderEnded",
			status: t.order.status
		}
	};
	let o = {
		name: "order",
		order: t.order,
		already: t.type === "already"
	};
	return {
		...m(e, Math.max(e.at, t.at), o),
		pending: i
	};
}
function b(e, t) {
	if (t.id !== void 0) {
		if (t.id !== e.pending?.id) return e;
		let { item: n, qty: r } = e.pending;
		if (e = {
			...e,
			pending: void 0
		}, e.view.name === "turn") {
			if (t.stock === "available") return {
				...e,
				notice: {
					kind: "fewer",
					left: t.left ?? Math.max(1, r - 1)
				}
			};
			let i = e.view.items.map((e) => e.id === (t.item || n) ? {
				...e,
				stock: 0
			} : e);
			if (e = {
				...e,
				view: {
					...e.view,
					items: i
				}
			}, i.some((e) => e.stock > 0)) return {
				...e,
				notice: {
					kind: "itemGone",
					item: t.item || n,
					stock: t.stock
				}
			};
		}
	} else if (t.item) return e.view.name === "turn" ? {
		...e,
		view: {
			...e.view,
			items: e.view.items.map((e) => e.id === t.item ? {
				...e,
				stock: 0
			} : e)
		}
	} : e;
	return t.stock === "held" && e.view.name === "queued" ? {
		...e,
		at: Math.max(e.at, t.at),
		view: {
			...e.view,
			stock: "held"
		}
	} : t.stock === "available" ? e : S(e, t.at, {
		name: "soldOut",
		stock: t.stock
	});
}
function x(e, t) {
	let n = e.sale;
	return n?.state === "scheduled" && e.view.name !== "lobby" ? S(e, t, {
		name: "scheduled",
		joinsAt: n.lobby_at ?? n.opens_at,
		opensAt: n.opens_at
	}) : S({
		...e,
		number: void 0
	}, t, { name: e.view.name === "left" ? "left" : "none" });
}
function S(e, t, n) {
	return t < e.at || p(e) ? e : {
		...m(e, t, n),
		notice: e.notice?.kind === "noTurn" ? e.notice : void 0
	};
}
function C(e, t) {
	if (t.code === "unavailable") return {
		...e,
		notice: { kind: "busy" }
	};
	let n = t.id !== void 0 && t.id === e.pending?.id ? void 0 : e.pending;
	return {
		...e,
		pending: n,
		notice: {
			kind: "error",
			code: t.code,
			msg: t.msg
		}
	};
}
function w({ type: e, ...t }) {
	return t;
}
// src/sluice.ts
var T = 15e3, E = 12e3, D = 1e4, O = class {
	options;
	clock;
	state = s;
	backoff;
	random;
	socket;
	openedAt = 0;
	heardAt = 0;
	movingUntil = 0;
	leaving = !1;
	code;
	timers = /* @__PURE__ */ new Map();
	constructor(t) {
		this.options = t, this.clock = t.clock ?? new i(), this.random = t.random ?? Math.random, this.backoff = new e(this.random);
	}
	start() {
		this.options.load().left ? this.set({
			...this.state,
			view: { name: "left" }
		}) : this.connect();
	}
	stop() {
		this.drop(), this.clearAll(), this.set({
			...this.state,
			link: "closed"
		});
	}
	join(e) {
		this.code = e, this.leaving = !1, this.options.save({}), this.set({
			...this.state,
			view: { name: "connecting" },
			number: void 0,
			notice: void 0,
			pending: void 0
		}), this.state.link === "open" ? this.hello() : this.connect();
	}
	leave() {
		this.leaving = !0, this.send({ type: "leave" });
	}
	grab(e, t) {
		if (this.state.pending) return;
		let n = (this.options.newId ?? (() => crypto.randomUUID()))();
		this.set({
			...this.state,
			pending: {
				id: n,
				item: e,
				qty: t
			},
			notice: void 0
		}), this.sendGrab();
	}
	pay() {
		return this.change("pay");
	}
	cancel() {
		return this.change("cancel");
	}
	recheck() {
		this.state.link === "waiting" ? this.after("reconnect", this.random() * 1e3, () => this.connect()) : this.state.link === "open" && performance.now() - this.heardAt > D && (this.hello(), this.after("welcome", T, () => this.lost(0, "")));
	}
	async change(e) {
		let { view: t, changing: n } = this.state;
		if (t.name !== "order" || n) return;
		this.set({
			...this.state,
			changing: e,
			notice: void 0
		});
		let i = await r(this.options.api ?? `${new URL(this.options.url.replace(/^ws/, "http")).origin}/api/v1`, this.options.token, t.order, e), a = {
			...this.state,
			changing: void 0
		};
		a.view.name !== "order" || a.view.order.id !== t.order.id ? this.set(a) : i === "unanswered" ? this.set({
			...a,
			notice: { kind: "unanswered" }
		}) : i === "refused" ? this.set({
			...a,
			notice: {
				kind: "error",
				code: e,
				msg: ""
			}
		}) : (this.note(i), this.set(c(a, {
			type: "order",
			at: a.at,
			order: i
		})));
	}
	connect() {
		this.drop(), this.clear("reconnect"), this.set({
			...this.state,
			link: "connecting"
		});
		let e = (this.options.open ?? ((e, t) => new WebSocket(e, t)))(this.options.url, "sluice.v1");
		this.socket = e, this.after("welcome", T, () => this.lost(0, "")), e.onopen = () => {
			e === this.socket && this.hello();
		}, e.onmessage = (t) => {
			e === this.socket && this.receive(String(t.data));
		}, e.onclose = (t) => {
			e === this.socket && this.lost(t.code, t.reason);
		};
	}
	hello() {
		let { seat: e, order: t } = this.options.load();
		this.send({
			type: "hello",
			token: this.options.token,
			seat: e,
			order: t,
			code: this.code
		});
	}
	receive(e) {
		let t;
		try {
			t = JSON.parse(e);
		} catch {
			return;
		}
		this.heardAt = performance.now(), t.type === "welcome" && this.clock.reset(), t.type !== "error" && t.type !== "limited" && t.type !== "moving" && this.clock.sample(t.at);
		let n = this.state;
		this.set(c(n, t)), this.follow(t, n), this.state.pending || this.clear("grab");
	}
	note(e) {
		let t = this.options.load();
		(a(e) || !t.order) && this.options.save({
			...t,
			order: e.id
		});
	}
	follow(e, t) {
		switch (e.type) {
			case "welcome":
				this.clear("welcome"), this.clear("hello"), t.link !== "open" && (this.openedAt = performance.now()), e.seat && this.options.save({
					...this.options.load(),
					seat: e.seat,
					left: void 0
				}), this.leaving && this.send({ type: "leave" }), this.state.pending && this.sendGrab();
				break;
			case "none":
				this.leaving ? this.gone() : this.state.view.name === "scheduled" && this.joinAt(this.state.view.joinsAt);
				break;
			case "missed":
				this.leaving && this.gone();
				break;
			case "lobby":
			case "queued":
			case "turn":
				t.view.name === "order" && !t.fresh && this.state.view.name !== "order" && this.options.save({
					...this.options.load(),
					order: void 0
				});
				break;
			case "success":
			case "already":
			case "order":
				h(this.state) ? this.options.save({
					...this.options.load(),
					order: void 0
				}) : this.note(e.order);
				break;
			case "limited":
				this.retry(e.id, e.retry_after_ms);
				break;
			case "error":
				(e.code === "unavailable" || e.retry_after_ms) && this.retry(e.id, e.retry_after_ms ?? 1e3);
				break;
			case "moving": this.movingUntil = performance.now() + e.retry_in_ms, this.after("reconnect", e.retry_in_ms, () => this.connect());
		}
	}
	retry(e, t) {
		e === void 0 ? this.after("hello", t, () => this.hello()) : e === this.state.pending?.id && this.after("grab", t, () => this.sendGrab());
	}
	joinAt(e) {
		let t = Math.max(0, e - this.clock.now());
		this.after("hello", Math.min(t, 2 ** 31 - 4e3) + this.random() * 3e3, () => this.hello());
	}
	sendGrab() {
		let e = this.state.pending;
		e && (this.send({
			type: "grab",
			...e
		}), this.after("grab", E, () => this.sendGrab()));
	}
	lost(e, t) {
		if (this.drop(), this.clear("welcome"), this.clear("hello"), this.clear("grab"), this.leaving && e === 1e3) {
			this.gone();
			return;
		}
		if (o(e)) {
			this.clearAll(), this.set({
				...this.state,
				link: "closed",
				pending: void 0,
				view: {
					name: "refused",
					code: e,
					reason: t
				}
			});
			return;
		}
		this.openedAt > 0 && performance.now() - this.openedAt >= 6e4 && this.backoff.reset(), this.openedAt = 0;
		let n = this.movingUntil - performance.now();
		this.movingUntil = 0, this.set({
			...this.state,
			link: "waiting"
		}), this.after("reconnect", n > 0 ? n : this.backoff.next(), () => this.connect());
	}
	gone() {
		this.leaving = !1, this.drop(), this.clearAll(), this.options.save({ left: !0 }), this.set({
			...this.state,
			link: "idle",
			number: void 0,
			pending: void 0,
			view: { name: "left" }
		});
	}
	send(e) {
		this.socket?.readyState === 1 && this.socket.send(JSON.stringify(e));
	}
	drop() {
		let e = this.socket;
		this.socket = void 0, e && (e.onopen = e.onmessage = e.onclose = null, e.close());
	}
	set(e) {
		e !== this.state && (this.state = e, this.options.onState(e));
	}
	after(e, t, n) {
		this.clear(e), this.timers.set(e, setTimeout(() => {
			this.timers.delete(e), n();
		}, t));
	}
	clear(e) {
		clearTimeout(this.timers.get(e)), this.timers.delete(e);
	}
	clearAll() {
		for (let e of [...this.timers.keys()]) this.clear(e);
	}
};
export { O as Sluice, c as reduce };
