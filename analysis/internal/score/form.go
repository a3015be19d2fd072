package score

import (
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// formScore is the form of a result: see results.Reader.FormCode.
var formScore = &kind{
	name: "form", make: func(int) statistic { return resultForm{} }, where: formedResult,
	single: .03, several: .03, views: []event.View{event.Sorted}, keeps: true, lopsided: true, event: FormEvent, whole: true,
	phrase: publicPhrase("another form of the answer: digits after the point, parts of a document, the words around numbers, or what an error says"),
}

type resultForm struct{ binned }

func (resultForm) score(r *Result) code.Code { return r.form }

func (resultForm) words(in *Input, s *Series, set uint64) withheld.Text {
	return in.binWords(s, set, nounOf("form", "forms"))
}
