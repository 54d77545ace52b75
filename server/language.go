package server

import (
	"fmt"
	"net/http"

	"golang.org/x/text/language"

	"sluice/queue"
)

// lang is a language that people are answered in.
type lang string

// The languages. English is the one for everybody else.
const (
	english lang = "en"
	chinese lang = "zh"
)

// maxAcceptLanguage is how much of a header is worth reading.
const maxAcceptLanguage = 256

func newLanguages() language.Matcher {
	return language.NewMatcher([]language.Tag{language.English, language.Chinese})
}

// languageOf is the language that the caller prefers among ours.
func (s *Server) languageOf(r *http.Request) lang {
	accept := r.Header.Get("Accept-Language")
	if accept == "" || len(accept) > maxAcceptLanguage {
		return english
	}
	tags, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return english
	}
	if _, index, confidence := s.languages.Match(tags...); index == 1 && confidence > language.No {
		return chinese
	}
	return english
}

// messageOf is the result of a grab as a sentence.
func messageOf(g queue.Grabbed, l lang) string {
	switch g.Result {
	case queue.Success:
		return successOf(g, l)
	case queue.Already:
		return l.either("You already have an order in this sale.", "您在本次活动中已有订单。")
	case queue.SoldOut:
		return soldOutOf(g, l)
	case queue.NoTurn:
		return l.either("It is not your turn: you have not been called yet, or your turn is over.", "还没有轮到您，或您的抢购时间已结束。")
	}
	return notOpenOf(g.State, l)
}

func successOf(g queue.Grabbed, l lang) string {
	if g.Order == nil || g.Order.Status.Live() {
		return l.either("You got it.", "抢购成功。")
	}
	// The answer to a repeated request is its order, whatever became of that.
	return l.either("You got it earlier; that order no longer stands.", "您之前已抢到，但该订单已失效。")
}

func soldOutOf(g queue.Grabbed, l lang) string {
	switch {
	case g.Stock == queue.Held:
		return l.either("None left right now; unpaid orders may give some back.", "暂时无货，未付款的订单可能会释放库存。")
	case g.Stock == queue.Available:
		return fmt.Sprintf(l.either("Only %d left.", "仅剩 %d 件。"), g.Left)
	}
	return l.either("Sold out.", "已售罄。")
}

func notOpenOf(state queue.State, l lang) string {
	switch state {
	case queue.Paused:
		return l.either("The sale is paused; nobody loses a turn.", "活动已暂停，您的抢购资格会保留。")
	case queue.Closed:
		return l.either("The sale is over.", "活动已结束。")
	}
	return l.either("The sale has not opened yet.", "活动尚未开始。")
}

// titleOf is a kind of failure in a few words.
func titleOf(code queue.Code, l lang) string {
	switch code {
	case queue.BadRequest:
		return l.either("The request cannot be understood", "请求格式有误")
	case queue.Unauthenticated:
		return l.either("Not signed in", "未登录或登录已失效")
	case queue.Forbidden:
		return l.either("Not allowed", "没有权限")
	case queue.NoSuchSale:
		return l.either("No such sale", "活动不存在")
	case queue.NoSuchOrder:
		return l.either("No such order", "订单不存在")
	case queue.NoSuchItem:
		return l.either("No such item", "商品不存在")
	case queue.Conflict:
		return l.either("Not possible in the present state", "当前状态不允许此操作")
	case queue.Invalid:
		return l.either("The request asks for something that is not possible", "请求内容不符合要求")
	case queue.Limited:
		return l.either("Too many requests", "请求过于频繁，请稍后再试")
	case notFound:
		return l.either("Not found", "地址不存在")
	case methodNotAllowed:
		return l.either("Method not allowed", "不支持该请求方法")
	case tooLarge:
		return l.either("Too large", "请求内容过大")
	case unsupportedMedia:
		return l.either("Media type not supported", "不支持该内容类型")
	}
	return l.either("Temporarily unavailable", "服务暂时不可用，请稍后再试")
}

func (l lang) either(en, zh string) string {
	if l == chinese {
		return zh
	}
	return en
}
