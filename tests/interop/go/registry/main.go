// Checks of a schema registry with franz-go's client (sr); prints "PASS name" or "FAIL name reason".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	order    = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`
	optional = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"note","type":["null","string"],"default":null}]}`
	required = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"price","type":"int"}]}`
	address  = `{"type":"record","name":"Address","namespace":"shop","fields":[{"name":"city","type":"string"}]}`
	customer = `{"type":"record","name":"Customer","fields":[{"name":"address","type":"shop.Address"}]}`
	person   = `{"type":"object","properties":{"name":{"type":"string"}}}`
	message  = "syntax = \"proto3\";\npackage shop;\n\nmessage Order {\n  string id = 1;\n}\n"
)

var (
	client *sr.Client
	ctx    = context.Background()
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func expect(holds bool, format string, words ...any) {
	if !holds {
		panic(fmt.Errorf(format, words...))
	}
}

func expectCode(err error, code int) {
	var answered *sr.ResponseError
	expect(errors.As(err, &answered) && answered.ErrorCode == code, "%v instead of error %d", err, code)
}

func avro(text string) sr.Schema { return sr.Schema{Schema: text, Type: sr.TypeAvro} }

func types() {
	found := must(client.SupportedTypes(ctx))
	for _, each := range []sr.SchemaType{sr.TypeAvro, sr.TypeJSON, sr.TypeProtobuf} {
		expect(slices.Contains(found, each), "%v is missing in %v", each, found)
	}
}

func register() {
	first := must(client.CreateSchema(ctx, "register", avro(order)))
	again := must(client.CreateSchema(ctx, "register", avro(order)))
	expect(first.ID == again.ID && again.Version == 1, "%v, then %v", first, again)
	second := must(client.CreateSchema(ctx, "register", avro(optional)))
	expect(second.Version == 2 && second.ID != first.ID, "%v", second)
	expect(must(client.SchemaTextByID(ctx, first.ID)) == order, "another text")
	expect(must(client.SchemaByVersion(ctx, "register", -1)).Version == 2, "another latest version")
	expect(slices.Equal(must(client.SubjectVersions(ctx, "register")), []int{1, 2}), "other versions")
	expect(len(must(client.Schemas(ctx, "register"))) == 2, "other schemas")
	found := must(client.LookupSchema(ctx, "register", avro(order)))
	expect(found.Version == 1, "%v", found)
	_, err := client.LookupSchema(ctx, "register", avro(address))
	expectCode(err, 40403)
}

func allTypes() {
	json := must(client.CreateSchema(ctx, "json", sr.Schema{Schema: person, Type: sr.TypeJSON}))
	proto := must(client.CreateSchema(ctx, "proto", sr.Schema{Schema: message, Type: sr.TypeProtobuf}))
	expect(json.Type == sr.TypeJSON && proto.Type == sr.TypeProtobuf, "%v, %v", json.Type, proto.Type)
	expect(must(client.SchemaByID(ctx, proto.ID)).Schema == message, "another text")
	expect(must(client.SchemaByID(ctx, json.ID)).Type == sr.TypeJSON, "another type")
}

func references() {
	must(client.CreateSchema(ctx, "address", avro(address)))
	reference := sr.SchemaReference{Name: "shop.Address", Subject: "address", Version: 1}
	schema := sr.Schema{Schema: customer, Type: sr.TypeAvro, References: []sr.SchemaReference{reference}}
	made := must(client.CreateSchema(ctx, "customer", schema))
	users := must(client.SchemaReferences(ctx, "address", 1))
	expect(len(users) == 1 && users[0].ID == made.ID, "%v", users)
	_, err := client.DeleteSubject(ctx, "address", sr.SoftDelete)
	expectCode(err, 42206)
}

func compatibility() {
	must(client.CreateSchema(ctx, "compatible", avro(order)))
	result := must(client.CheckCompatibility(ctx, "compatible", -1, avro(required)))
	expect(!result.Is, "the check passed")
	_, err := client.CreateSchema(ctx, "compatible", avro(required))
	expectCode(err, 40901)
	for _, each := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatForwardTransitive}, "compatible") {
		expect(each.Err == nil, "%v", each.Err)
	}
	level := client.Compatibility(ctx, "compatible")[0]
	expect(level.Err == nil && level.Level == sr.CompatForwardTransitive, "%v", level)
	must(client.CreateSchema(ctx, "compatible", avro(required)))
	expect(client.ResetCompatibility(ctx, "compatible")[0].Err == nil, "the level remains")
}

func usages() {
	one := must(client.CreateSchema(ctx, "usage-1", avro(order)))
	two := must(client.CreateSchema(ctx, "usage-2", avro(order)))
	expect(one.ID == two.ID, "%d and %d", one.ID, two.ID)
	subjects := must(client.SubjectsByID(ctx, one.ID))
	expect(slices.Contains(subjects, "usage-1") && slices.Contains(subjects, "usage-2"), "%v", subjects)
	expect(len(must(client.SchemaVersionsByID(ctx, one.ID))) >= 2, "fewer versions")
	expect(len(must(client.SchemaUsagesByID(ctx, one.ID))) >= 2, "fewer usages")
	expect(len(must(client.AllSchemas(ctx))) >= 2, "fewer schemas")
}

func guids() {
	made := must(client.CreateSchema(ctx, "guid", avro(optional)))
	latest := must(client.SchemaByVersion(ctx, "guid", -1))
	expect(latest.GUID != "", "no GUID")
	expect(must(client.SchemaByGUID(ctx, latest.GUID)).Schema.Schema == optional, "another text")
	ids := must(client.SchemaIDsByGUID(ctx, latest.GUID))
	expect(len(ids) == 1 && ids[0].ID == made.ID, "%v", ids)
}

func deletes() {
	must(client.CreateSchema(ctx, "deleted", avro(order)))
	expect(client.DeleteSchema(ctx, "deleted", 1, sr.SoftDelete) == nil, "not deleted")
	_, err := client.SchemaByVersion(ctx, "deleted", 1)
	expectCode(err, 40401)
	shown := must(client.SchemaByVersion(sr.WithParams(ctx, sr.ShowDeleted), "deleted", 1))
	expect(shown.Version == 1, "%v", shown)
	expect(client.DeleteSchema(ctx, "deleted", 1, sr.HardDelete) == nil, "not deleted permanently")
	_, err = client.SubjectVersions(sr.WithParams(ctx, sr.ShowDeleted), "deleted")
	expectCode(err, 40401)
	must(client.CreateSchema(ctx, "deleted", avro(order)))
	expect(slices.Equal(must(client.DeleteSubject(ctx, "deleted", sr.SoftDelete)), []int{1}), "other versions")
}

func modes() {
	set := client.SetMode(ctx, sr.ModeImport, "imported")[0]
	expect(set.Err == nil && set.Mode == sr.ModeImport, "%v", set)
	made := must(client.CreateSchemaWithIDAndVersion(ctx, "imported", avro(order+" "), 4711, 7))
	expect(made.ID == 4711 && made.Version == 7, "%v", made)
	expect(client.ResetMode(ctx, "imported")[0].Err == nil, "the mode remains")
	expect(client.SetMode(ctx, sr.ModeReadOnly, "imported")[0].Err == nil, "not read-only")
	_, err := client.CreateSchema(ctx, "imported", avro(address))
	expectCode(err, 42205)
}

func contexts() {
	id := must(client.RegisterSchema(ctx, ":.staging:orders", avro(address), -1, -1))
	expect(id == 1, "the ids of a context begin at 1, not %d", id)
	expect(slices.Contains(must(client.Contexts(ctx)), ".staging"), "no context")
	inside := sr.WithParams(ctx, sr.Subject(":.staging:orders"))
	expect(must(client.SchemaByID(inside, 1)).Schema == address, "another text")
}

func serde() {
	made := must(client.CreateSchema(ctx, "serde-value", avro(order)))
	var serde sr.Serde
	serde.Register(made.ID, map[string]string{}, sr.EncodeFn(func(any) ([]byte, error) { return []byte("data"), nil }))
	framed := must(serde.Encode(map[string]string{}))
	id, rest, err := serde.DecodeID(framed)
	expect(err == nil && id == made.ID && string(rest) == "data", "%d %q %v", id, rest, err)
}

func main() {
	client = must(sr.NewClient(sr.URLs(os.Args[1])))
	checks := []struct {
		name string
		run  func()
	}{
		{"types", types},
		{"register", register},
		{"all-types", allTypes},
		{"references", references},
		{"compatibility", compatibility},
		{"usages", usages},
		{"guids", guids},
		{"deletes", deletes},
		{"modes", modes},
		{"contexts", contexts},
		{"serde", serde},
	}
	for _, check := range checks {
		report(check.name, check.run)
	}
}

func report(name string, run func()) {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Printf("FAIL %s %v\n", name, reason)
			return
		}
		fmt.Printf("PASS %s\n", name)
	}()
	run()
}
