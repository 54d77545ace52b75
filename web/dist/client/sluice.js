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
}, t = 4;
async function n(n, r, i, a) {
	let o = `${n}/orders/${i.id}`, s = `?sale=${i.sale}`, c = { Authorization: `Bearer ${r}` }, l = new e();
	for (let e = 1;; e++) {
		let n = 0;
		try {
			let e = await fetch(`${o}/${a}${s}`, {
				method: "POST",
				headers: c
			});
			if (e.status === 409 && (e = await fetch(o + s, { headers: c })), e.ok) return await e.json();
			if (e.status !== 429 && e.status !== 503) return;
			n = Number(e.headers.get("Retry-After")) * 1e3;
		} catch {}
		if (e === t) return;
		let r = Math.max(n, l.next());
		await new Promise((e) => setTimeout(e, r));
	}
}
// src/clock.ts
var r = class {
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
function i(e) {
	return e.status === "reserved" || e.status === "confirmed" || e.status === "paid";
}
function a(e) {
	return e >= 4400 && e <= 4407 || e === 4409;
}
// src/state.ts
var o = {
	link: "idle",
	view: { name: "connecting" },
	at: 0,
	fresh: !1
};
function s(e, t) {
	switch (t.type) {
		case "welcome": return c(e, t);
		case "lobby": return l(e, t.at) || f(e) ? e : p(e, t.at, {
			name: "lobby",
			...x(t)
		});
		case "queued": return l(e, t.at) || f(e) ? e : p({
			...e,
			number: t.number,
			jump: d(e, t)
		}, t.at, {
			name: "queued",
			...x(t)
		});
		case "turn": return m(e, t);
		case "success":
		case "already":
		case "order": return g(e, t);
		case "sold_out": return _(e, t);
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
		case "missed": return y(e, t.at, {
			name: "missed",
			why: t.why ?? "expired"
		});
		case "none": return v(e, t.at);
		case "closed": return y({
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
		case "error": return b(e, t);
		default: return e;
	}
}
function c(e, t) {
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
function l(e, t) {
	if (e.fresh) return !1;
	let n = e.view.name === "queued" || e.view.name === "lobby", r = e.view.name === "soldOut" && e.view.stock === "held";
	return t < e.at || t === e.at && !n && !r;
}
var u = 2e4;
function d(e, t) {
	return t.reason ? {
		why: t.reason,
		at: t.at
	} : e.jump && t.at - e.jump.at < u ? e.jump : void 0;
}
function f(e) {
	return !e.fresh && e.view.name === "order" && i(e.view.order);
}
function p(e, t, n) {
	return {
		...e,
		at: t,
		view: n,
		notice: void 0,
		fresh: !1
	};
}
function m(e, t) {
	if (t.at < e.at || f(e)) return e;
	let n = e.view.name === "turn" ? e.view.began : t.at;
	return p(e, t.at, {
		name: "turn",
		began: n,
		...x(t)
	});
}
var h = {
	reserved: 0,
	confirmed: 1,
	paid: 2,
	cancelled: 3,
	expired: 3,
	rejected: 3
};
function g(e, t) {
	let n = e.view.name === "order" ? e.view : void 0, r = t.id !== void 0 && t.id === e.pending?.id || i(t.order) ? void 0 : e.pending;
	if (n && n.order.id === t.order.id) {
		if (h[t.order.status] < h[n.order.status]) return {
			...e,
			pending: r
		};
		let i = {
			...n,
			order: {
				...n.order,
				...t.order
			}
		};
		return {
			...p(e, Math.max(e.at, t.at), i),
			pending: r
		};
	}
	if (n && i(n.order) && !i(t.order)) return {
		...e,
		pending: r
	};
	let a = {
		name: "order",
		order: t.order,
		already: t.type === "already"
	};
	return {
		...p(e, Math.max(e.at, t.at), a),
		pending: r
	};
}
function _(e, t) {
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
	} : t.stock === "available" ? e : y(e, t.at, {
		name: "soldOut",
		stock: t.stock
	});
}
function v(e, t) {
	let n = e.sale;
	return n?.state === "scheduled" && e.view.name !== "lobby" ? y(e, t, {
		name: "scheduled",
		joinsAt: n.lobby_at ?? n.opens_at,
		opensAt: n.opens_at
	}) : y({
		...e,
		number: void 0
	}, t, { name: e.view.name === "left" ? "left" : "none" });
}
function y(e, t, n) {
	return t < e.at || f(e) ? e : {
		...p(e, t, n),
		notice: e.notice?.kind === "noTurn" ? e.notice : void 0
	};
}
function b(e, t) {
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
function x({ type: e, ...t }) {
	return t;
}
// src/sluice.ts
var S = 15e3, C = 12e3, w = 1e4, T = class {
	options;
	clock;
	state = o;
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
		this.options = t, this.clock = t.clock ?? new r(), this.random = t.random ?? Math.random, this.backoff = new e(this.random);
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
		this.state.link === "waiting" ? this.after("reconnect", this.random() * 1e3, () => this.connect()) : this.state.link === "open" && performance.now() - this.heardAt > w && (this.hello(), this.after("welcome", S, () => this.lost(0, "")));
	}
	async change(e) {
		let { view: t, changing: r } = this.state;
		if (t.name !== "order" || r) return;
		this.set({
			...this.state,
			changing: e,
			notice: void 0
		});
		let i = await n(this.options.api ?? `${new URL(this.options.url.replace(/^ws/, "http")).origin}/api/v1`, this.options.token, t.order, e), a = {
			...this.state,
			changing: void 0
		};
		i ? (this.note(i), this.set(s(a, {
			type: "order",
			at: a.at,
			order: i
		}))) : this.set({
			...a,
			notice: { kind: "unanswered" }
		});
	}
	connect() {
		this.drop(), this.clear("reconnect"), this.set({
			...this.state,
			link: "connecting"
		});
		let e = (this.options.open ?? ((e, t) => new WebSocket(e, t)))(this.options.url, "sluice.v1");
		this.socket = e, this.after("welcome", S, () => this.lost(0, "")), e.onopen = () => {
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
		this.set(s(n, t)), this.follow(t, n), this.state.pending || this.clear("grab");
	}
	note(e) {
		let t = this.options.load();
		(i(e) || !t.order) && this.options.save({
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
				this.note(e.order);
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
		}), this.after("grab", C, () => this.sendGrab()));
	}
	lost(e, t) {
		if (this.drop(), this.clear("welcome"), this.clear("hello"), this.clear("grab"), this.leaving && e === 1e3) {
			this.gone();
			return;
		}
		if (a(e)) {
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
export { T as Sluice, s as reduce };
