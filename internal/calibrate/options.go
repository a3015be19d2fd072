package calibrate

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// path returns the setting search_path.
func path(schemas []string) string {
	quoted := make([]string, len(schemas))
	for i, s := range schemas {
		quoted[i] = ident.Quote(s)
	}
	return strings.Join(quoted, ", ")
}

func (o *Options) validate() error {
	switch {
	case len(o.Functions) == 0:
		return errors.New("no functions: give at least one, for example --functions 'count=my_count($value, $epsilon)'")
	case len(o.Epsilons) == 0 || len(o.Rows) == 0:
		return errors.New("give at least one epsilon and one number of rows")
	case !(o.Delta >= 0 && o.Delta < 1):
		return fmt.Errorf("delta %g: must be at least 0 and less than 1", o.Delta)
	case !(o.Lower < o.Upper) || math.IsInf(o.Lower, 0) || math.IsInf(o.Upper, 0):
		return fmt.Errorf("bounds %g and %g: the lower bound must be less than the upper one", o.Lower, o.Upper)
	case !(o.Confidence > .5 && o.Confidence < 1):
		return fmt.Errorf("confidence %g: must be more than 0.5 and less than 1", o.Confidence)
	case o.MaxTrials < 1:
		return fmt.Errorf("%d trials: must be at least 1", o.MaxTrials)
	case o.FitTrials < 20:
		return fmt.Errorf("%d executions for the goodness of fit: at least 20 are needed", o.FitTrials)
	case o.Timeout < time.Millisecond:
		return fmt.Errorf("statement timeout %s: must be at least 1ms", o.Timeout)
	}
	for _, e := range o.Epsilons {
		if !(e > 0) || math.IsInf(e, 0) {
			return fmt.Errorf("epsilon %g: must be a finite number above 0", e)
		}
	}
	for _, n := range o.Rows {
		if n < 1 || n > 1_000_000 {
			return fmt.Errorf("%d rows: must be from 1 to 1000000", n)
		}
	}
	return nil
}
