package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// CloudEvent returns m as a CloudEvents 1.0 event in structured mode. Its id is the same over all attempts to send it.
func CloudEvent(m Message, extra []Label) ([]byte, error) {
	return json.Marshal(map[string]any{
		"specversion": "1.0", "id": m.Delivery, "source": "/dpwatch/" + url.PathEscape(m.Engine), "type": "io.dpwatch.alert." + m.Status,
		"subject": m.ID, "time": m.Updated, "datacontenttype": "application/json",
		"data": labelled{m, labels(extra)},
	})
}

// JSON returns m with the labels of a receiver, for programs.
func JSON(m Message, extra []Label) ([]byte, error) { return json.Marshal(labelled{m, labels(extra)}) }

type labelled struct {
	Message
	Labels map[string]string `json:"labels,omitempty"`
}

func labels(extra []Label) map[string]string {
	all := map[string]string{}
	for _, l := range extra {
		all[l.Name] = l.Value
	}
	return all
}

// SignWebhook returns the headers of a request with a Standard Webhooks signature (https://www.standardwebhooks.com). A
// secret that begins with whsec_ is base64.
func SignWebhook(secret, id string, at time.Time, body []byte) map[string]string {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			key = decoded
		}
	}
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + seconds + "."))
	mac.Write(body)
	return map[string]string{
		"webhook-id": id, "webhook-timestamp": seconds,
		"webhook-signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
}
