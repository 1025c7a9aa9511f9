// franz-go with TLS and SASL. Reads a JSON array of connections from standard input, and for each creates a topic,
// produces and consumes 20 records in a group. Prints one line each: the name, a tab, and "OK" or the error.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const count = 20

type connection struct {
	Name, Bootstrap, Topic       string
	Mechanism, User, Password    string
	Token                        string
	Realm, Configuration, Keytab string
	Authority, Certificate, Key  string
}

func main() {
	var connections []connection
	if err := json.NewDecoder(os.Stdin).Decode(&connections); err != nil {
		panic(err)
	}
	for _, each := range connections {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := each.run(ctx); err != nil {
			fmt.Printf("%s\t%s\n", each.Name, strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("%s\tOK\n", each.Name)
		}
		cancel()
	}
}

func (c connection) run(ctx context.Context) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(options, kgo.ConsumerGroup(c.Topic), kgo.ConsumeTopics(c.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return err
	}
	defer client.Close()
	created, err := kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, c.Topic)
	if err != nil {
		return err
	}
	if created[c.Topic].Err != nil {
		return created[c.Topic].Err
	}
	for n := range count {
		record := &kgo.Record{Topic: c.Topic, Value: fmt.Appendf(nil, "value-%d", n)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	for taken := 0; taken < count; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%d of %d records: %w", taken, count, err)
		}
		taken += fetches.NumRecords()
	}
	return client.CommitUncommittedOffsets(ctx)
}

func (c connection) options() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(c.Bootstrap)}
	switch c.Mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: c.User, Pass: c.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: c.Token}.AsMechanism()))
	case "GSSAPI":
		user, err := c.kerberos()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(kerberos.Auth{Client: user, Service: "kafka", PersistAfterAuth: true}.AsMechanism()))
	}
	if c.Authority == "" {
		return options, nil
	}
	settings, err := c.tls()
	return append(options, kgo.DialTLSConfig(settings)), err
}

func (c connection) kerberos() (*client.Client, error) {
	settings, err := config.Load(c.Configuration)
	if err != nil {
		return nil, err
	}
	keys, err := keytab.Load(c.Keytab)
	if err != nil {
		return nil, err
	}
	return client.NewWithKeytab(c.User, c.Realm, keys, settings, client.DisablePAFXFAST(true)), nil
}

func (c connection) tls() (*tls.Config, error) {
	text, err := os.ReadFile(c.Authority)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{RootCAs: x509.NewCertPool()}
	settings.RootCAs.AppendCertsFromPEM(text)
	if c.Certificate == "" {
		return settings, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
	settings.Certificates = []tls.Certificate{pair}
	return settings, err
}
