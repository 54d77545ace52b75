var e = class {
	random;
	#e = 0;
	constructor(e = Math.random) {
		this.random = e;
	}
	next() {
		let e = Math.min(3e4, 3e3 * 2 ** Math.min(this.#e, 10));
		return this.#e++, this.random() * e;
	}
	reset() {
		this.#e = 0;
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
	#e;
	constructor(e = () => performance.now()) {
		this.steady = e;
	}
	sample(e) {
		let t = e - this.steady();
		(this.#e === void 0 || t > this.#e || t < this.#e - 5e3) && (this.#e = t);
	}
	reset() {
		this.#e = void 0;
	}
	now() {
		return this.#e === void 0 ? Date.now() : this.steady() + this.#e;
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
	clock;
	state = s;
	#e;
	#t;
	#n;
	#r = 0;
	#i = 0;
	#a = 0;
	#o = !1;
	#s = !1;
	#c = /* @__PURE__ */ new Map();
	#l;
	constructor(t) {
		this.#l = { ...t }, this.clock = t.clock ?? new i(), this.#t = t.random ?? Math.random, this.#e = new e(this.#t);
	}
	start() {
		this.#l.load().left ? this.#C({
			...this.state,
			view: { name: "left" }
		}) : this.#d();
	}
	stop() {
		this.#S(), this.#E(), this.#C({
			...this.state,
			link: "closed"
		});
	}
	join(e = this.#l.code, t) {
		Object.assign(this.#l, {
			code: e,
			challenge: t
		}), this.#o = !1, this.#l.save({}), this.#C({
			...this.state,
			view: { name: "connecting" },
			number: void 0,
			notice: void 0,
			pending: void 0
		}), this.state.link === "open" ? this.#f() : this.#d();
	}
	leave() {
		this.#o = !0, this.#x({ type: "leave" });
	}
	grab(e, t) {
		if (this.state.pending) return;
		let n = (this.#l.newId ?? (() => crypto.randomUUID()))();
		this.#C({
			...this.state,
			pending: {
				id: n,
				item: e,
				qty: t
			},
			notice: void 0
		}), this.#v();
	}
	pay() {
		return this.#u("pay");
	}
	cancel() {
		return this.#u("cancel");
	}
	recheck() {
		this.state.link === "waiting" ? this.#w("reconnect", this.#t() * 1e3, () => this.#d()) : this.state.link === "open" && performance.now() - this.#i > D && (this.#f(), this.#w("welcome", T, () => this.#y(0, "")));
	}
	async #u(e) {
		let { view: t, changing: n } = this.state;
		if (t.name !== "order" || n) return;
		this.#C({
			...this.state,
			changing: e,
			notice: void 0
		});
		let i = await r(this.#l.api ?? `${new URL(this.#l.url.replace(/^ws/, "http")).origin}/api/v1`, this.#l.token, t.order, e), a = {
			...this.state,
			changing: void 0
		};
		a.view.name !== "order" || a.view.order.id !== t.order.id ? this.#C(a) : i === "unanswered" ? this.#C({
			...a,
			notice: { kind: "unanswered" }
		}) : i === "refused" ? this.#C({
			...a,
			notice: {
				kind: "error",
				code: e,
				msg: ""
			}
		}) : (this.#m(i), this.#C(c(a, {
			type: "order",
			at: a.at,
			order: i
		})));
	}
	#d() {
		this.#S(), this.#T("reconnect"), this.#C({
			...this.state,
			link: "connecting"
		});
		let e = (this.#l.open ?? ((e, t) => new WebSocket(e, t)))(this.#l.url, "sluice.v1");
		this.#n = e, this.#w("welcome", T, () => this.#y(0, "")), e.onopen = () => {
			e === this.#n && this.#f();
		}, e.onmessage = (t) => {
			e === this.#n && this.#p(String(t.data));
		}, e.onclose = (t) => {
			e === this.#n && this.#y(t.code, t.reason);
		};
	}
	#f() {
		let { token: e, code: t, challenge: n, load: r } = this.#l, { seat: i, order: a } = r();
		this.#x({
			type: "hello",
			token: e,
			seat: this.#s ? void 0 : i,
			order: a,
			code: t,
			challenge: n
		});
	}
	#p(e) {
		let t;
		try {
			t = JSON.parse(e);
		} catch {
			return;
		}
		this.#i = performance.now(), t.type === "welcome" && this.clock.reset(), t.type !== "error" && t.type !== "limited" && t.type !== "moving" && this.clock.sample(t.at);
		let n = this.state;
		this.#C(c(n, t)), this.#h(t, n), this.state.pending || this.#T("grab");
	}
	#m(e) {
		let t = this.#l.load();
		(a(e) || !t.order) && this.#l.save({
			...t,
			order: e.id
		});
	}
	#h(e, t) {
		switch (e.type) {
			case "welcome":
				this.#T("welcome"), this.#T("hello"), this.#s = !1, t.link !== "open" && (this.#r = performance.now()), e.seat && this.#l.save({
					...this.#l.load(),
					seat: e.seat,
					left: void 0
				}), this.#o && this.#x({ type: "leave" }), this.state.pending && this.#v();
				break;
			case "none":
				this.#o ? this.#b() : this.state.view.name === "scheduled" && this.#_(this.state.view.joinsAt);
				break;
			case "missed":
				this.#o && this.#b();
				break;
			case "lobby":
			case "queued":
			case "turn":
				t.view.name === "order" && !t.fresh && this.state.view.name !== "order" && this.#l.save({
					...this.#l.load(),
					order: void 0
				});
				break;
			case "success":
			case "already":
			case "order":
				h(this.state) ? this.#l.save({
					...this.#l.load(),
					order: void 0
				}) : this.#m(e.order);
				break;
			case "limited":
				this.#g(e.id, e.retry_after_ms);
				break;
			case "error":
				(e.code === "unavailable" || e.retry_after_ms) && this.#g(e.id, e.retry_after_ms ?? 1e3);
				break;
			case "moving": this.#a = performance.now() + e.retry_in_ms, this.#w("reconnect", e.retry_in_ms, () => this.#d());
		}
	}
	#g(e, t) {
		e === void 0 ? this.#w("hello", t, () => this.#f()) : e === this.state.pending?.id && this.#w("grab", t, () => this.#v());
	}
	#_(e) {
		let t = Math.max(0, e - this.clock.now());
		this.#w("hello", Math.min(t, 2 ** 31 - 4e3) + this.#t() * 3e3, () => this.#f());
	}
	#v() {
		let e = this.state.pending;
		e && (this.#x({
			type: "grab",
			...e
		}), this.#w("grab", E, () => this.#v()));
	}
	#y(e, t) {
		if (this.#S(), this.#T("welcome"), this.#T("hello"), this.#T("grab"), this.#o && e === 1e3) {
			this.#b();
			return;
		}
		if (e === 4401 && !this.#s && this.#l.load().seat) {
			this.#s = !0, this.#d();
			return;
		}
		if (o(e)) {
			this.#E(), this.#C({
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
		this.#r > 0 && performance.now() - this.#r >= 6e4 && this.#e.reset(), this.#r = 0;
		let n = this.#a - performance.now();
		this.#a = 0, this.#C({
			...this.state,
			link: "waiting"
		}), this.#w("reconnect", n > 0 ? n : this.#e.next(), () => this.#d());
	}
	#b() {
		this.#o = !1, this.#S(), this.#E(), this.#l.save({ left: !0 }), this.#C({
			...this.state,
			link: "idle",
			number: void 0,
			pending: void 0,
			view: { name: "left" }
		});
	}
	#x(e) {
		this.#n?.readyState === 1 && this.#n.send(JSON.stringify(e));
	}
	#S() {
		let e = this.#n;
		this.#n = void 0, e && (e.onopen = e.onmessage = e.onclose = null, e.close());
	}
	#C(e) {
		e !== this.state && (this.state = e, this.#l.onState(e));
	}
	#w(e, t, n) {
		this.#T(e), this.#c.set(e, setTimeout(() => {
			this.#c.delete(e), n();
		}, t));
	}
	#T(e) {
		clearTimeout(this.#c.get(e)), this.#c.delete(e);
	}
	#E() {
		for (let e of [...this.#c.keys()]) this.#T(e);
	}
};
export { O as Sluice, c as reduce };
