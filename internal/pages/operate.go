package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/web"
)

func (s *site) alerts(r *http.Request) (content, error) {
	d := sections{Done: map[string]string{"retry": "The failed messages are sent again."}[r.URL.Query().Get("done")]}
	listed := 0
	list := section{Title: "Alerts", Header: []string{"Alert", "State", "Since", "Messages"}, Empty: "No alert was sent."}
	failed := section{Title: "Messages that did not arrive", Header: []string{"Alert", "Receiver", "State", "Attempts", "Last error"}, Empty: "None: every message arrived."}
	all, err := s.relay.Ledgers.Alerts(r.Context())
	if err != nil {
		d.Sections = append(d.Sections, faultSection("Alerts", err))
	}
	for _, a := range all {
		if a.Status == "firing" {
			listed++
		}
		messages := "all arrived"
		if len(a.Deliveries) == 0 {
			messages = "none was sent"
		}
		if a.Failed+a.Pending > 0 {
			messages = fmt.Sprintf("%d wait, %d failed", a.Pending, a.Failed)
		}
		list.Rows = append(list.Rows, []cell{text(a.Title), text(a.Status + ", " + a.Severity), text(ago(a.StartsAt)), text(messages)})
		for _, m := range a.Deliveries {
			if m.State != ledger.DeliveryDelivered {
				failed.Rows = append(failed.Rows, []cell{text(a.Title), text(m.Receiver), text(m.State), text(m.Attempts), text(m.Error)})
			}
		}
		if a.Failed > 0 {
			failed.Buttons = append(failed.Buttons, button{"/alerts/" + url.PathEscape(a.ID) + "/retry", "Send the failed messages of “" + a.Title + "” again", nil})
		}
	}
	receivers := section{Title: "Receivers", Header: []string{"Name", "Type"}, Empty: "No receiver: add one to alerts.receivers. Alerts are in the log alone until then."}
	for _, to := range s.relay.Ledgers.Receivers() {
		receivers.Rows = append(receivers.Rows, []cell{text(to[0]), text(to[1])})
	}
	if len(receivers.Rows) == 0 {
		failed.Empty = "None: there is no receiver to which messages go."
	}
	if err == nil {
		d.Sections = append(d.Sections, list, failed)
	}
	d.Sections = append(d.Sections, receivers, section{Title: "Silence", Notes: []string{
		"A violation that is accepted sends no alerts until its date: the page of its query has that action. Silences by label are made in Alertmanager.",
	}})
	engines, unknown := s.relay.Engines.Overviews("", values(r))
	if unknown != nil {
		return content{}, unknown
	}
	return content{alertsTitle(engines, listed, len(receivers.Rows) > 0, err), d}, nil
}

// alertsTitle sums up the page of alerts. listed is the number of firing alerts in the ledgers, and err why those
// cannot be read.
func alertsTitle(engines []status.Overview, listed int, receivers bool, err error) string {
	open, firing, known := 0, 0, true
	late := false
	for i := range engines {
		o := &engines[i]
		open += o.Open()
		if known = known && o.Alerts != nil; !known {
			continue
		}
		firing += o.Alerts.Firing
		late = late || o.Alerts.Late()
	}
	if !known {
		firing = listed
	}
	title := plural(firing, "alert is", "alerts are") + " firing"
	switch {
	case !receivers:
		title = "No alert is sent: no receiver is configured"
	case err != nil && !known:
		title = "The alerts cannot be read"
	case err != nil:
		title += "; the ledger's list of alerts cannot be read"
	}
	if open > 0 && (open > firing || !receivers) {
		title += "; " + plural(open, "violation is", "violations are") + " open"
	}
	if late {
		title += "; messages do not arrive"
	}
	return title + "."
}

func (s *site) retryAlert(w http.ResponseWriter, r *http.Request) {
	if err := s.relay.Ledgers.RetryAlert(r.Context(), r.PathValue("id")); err != nil {
		s.fail(w, r, asBadRequest(err))
		return
	}
	http.Redirect(w, r, "/alerts?done=retry", http.StatusSeeOther)
}

func (s *site) jobs(r *http.Request) (content, error) {
	engine := r.URL.Query().Get("engine")
	all, err := s.relay.Engines.Jobs(engine, values(r))
	if err != nil {
		return content{}, badRequestError{err}
	}
	d := sections{Done: map[string]string{"deploy": "All queries are audited again, those with violations as well; a violation stays open until the new audit resolves it."}[r.URL.Query().Get("done")]}
	pending := 0
	for _, j := range all {
		parts := section{Title: "Replays", Header: []string{"Part", "Now"}}
		if len(all) > 1 {
			parts.Title += " of engine " + j.Engine
		}
		parts.Buttons = []button{{"/jobs/pause", "Pause replays", []field{{Name: "engine", Value: j.Engine}}}}
		if j.Paused {
			parts.Notes = append(parts.Notes, "Replays are paused: nothing is found until they resume.")
			parts.Buttons = []button{{"/jobs/resume", "Resume replays", []field{{Name: "engine", Value: j.Engine}}}}
		}
		parts.Buttons = append(parts.Buttons, button{"/jobs/deploy", "Audit all queries again", []field{{Name: "engine", Value: j.Engine}, {Name: "label", Label: "Another version of the engine was deployed:"}}})
		if j.Fault != "" {
			parts.Notes = append(parts.Notes, "The auditor: "+j.Fault+".")
		}
		for _, p := range j.Parts {
			parts.Rows = append(parts.Rows, []cell{text(p.Name), text(p.Text)})
		}
		queue := section{Title: "Audits that have trials, or wait for them", Header: []string{"Query", "State", "Trials", "Waits for"}, Empty: "None: every audit is decided."}
		for i := range j.Audits {
			a := &j.Audits[i]
			state := show.Words(string(a.State))
			if a.Worker != "" {
				state += " on worker " + a.Worker
			}
			queue.Rows = append(queue.Rows, []cell{query(a.ID, show.Printable(a.Summary)), text(state), text(a.Trials()), text(show.Printable(a.WaitsFor()))})
		}
		if pending += len(j.Audits) + j.LeftOut; j.LeftOut > 0 {
			queue.Notes = append(queue.Notes, fmt.Sprintf("%d more are not shown.", j.LeftOut))
		}
		workers := section{Title: "Workers on other machines", Header: []string{"Worker", "Host", "Version", "Slots", "Turns", "Last heard", "Refused because"}, Empty: "None: this machine runs all trials. dpwatch worker adds one."}
		for _, w := range j.Workers {
			workers.Rows = append(workers.Rows, []cell{text(w.ID), text(w.Host), text(w.Version), text(w.Slots), text(w.Turns), text(w.Heard), text(w.Refused)})
		}
		d.Sections = append(d.Sections, parts, queue, workers)
	}
	return content{plural(pending, "audit runs or waits.", "audits run or wait."), d}, nil
}

// pause returns the handler that pauses or resumes the replays of an engine.
func (s *site) pause(paused bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.relay.Engines.Pause(r.PostFormValue("engine"), paused); err != nil {
			s.fail(w, r, asBadRequest(err))
			return
		}
		http.Redirect(w, r, "/jobs", http.StatusSeeOther)
	}
}

func (s *site) deploy(w http.ResponseWriter, r *http.Request) {
	if err := s.relay.Engines.Deploy(r.PostFormValue("engine"), r.PostFormValue("label")); err != nil {
		s.fail(w, r, asBadRequest(err))
		return
	}
	http.Redirect(w, r, "/jobs?done=deploy", http.StatusSeeOther)
}

func (s *site) settings(r *http.Request) (content, error) {
	const title = "Settings: the configuration in force."
	if web.IdentityOf(r.Context()).Roles == 0 {
		return content{title, sections{Sections: []section{{Notes: []string{"The configuration may name units of privacy: it is for the roles auditor and operator."}}}}}, nil
	}
	file, err := s.relay.Configuration.Effective()
	if err != nil {
		return content{}, err
	}
	return content{title, sections{Sections: []section{
		{Notes: []string{"Every key with the value in force: that of the file or the default. Secrets are masked. To change a key, change the file and send SIGHUP; docs/admin.md says which keys need a restart."}, Text: strings.TrimSpace(string(file))},
	}}}, nil
}
