// The checks of franz-go (kgo and kadm) against a broker known only by its bootstrap address.
// Prints one line per check, "PASS name" or "FAIL name reason". Arguments: the address, then the checks to run.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type check struct {
	name string
	run  func(ctx context.Context, topic string) error
}

var (
	bootstrap string
	admin     *kadm.Client
)

func main() {
	bootstrap = os.Args[1]
	admin = kadm.NewClient(client())
	for _, each := range checks() {
		if len(os.Args) > 2 && !slices.Contains(os.Args[2:], each.name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		if err := each.run(ctx, each.name+"-"+suffix()); err != nil {
			fmt.Printf("FAIL %s %s\n", each.name, strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("PASS %s\n", each.name)
		}
		cancel()
	}
}

func checks() []check {
	all := []check{
		{"nulls-and-empties", nullsAndEmpties},
		{"idempotence-in-order", idempotenceInOrder},
		{"log-append-time", logAppendTime},
		{"big-records", bigRecords},
		{"record-too-large", recordTooLarge},
		{"keyless-on-compacted", keylessOnCompacted},
		{"auto-creation", autoCreation},
		{"unknown-topic", unknownTopic},
		{"inside-a-batch", insideABatch},
		{"offsets-by-time", offsetsByTime},
		{"a-thousand-partitions", aThousandPartitions},
		{"create-describe-delete", createDescribeDelete},
		{"refused-topics", refusedTopics},
		{"add-partitions", addPartitions},
		{"configs", configs},
		{"delete-records", deleteRecords},
		{"log-dirs", logDirs},
		{"cluster", cluster},
		{"producers", producers},
		{"api-versions", apiVersions},
		{"acls-need-an-authorizer", aclsNeedAnAuthorizer},
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		all = append(all, check{"codec-" + name, func(ctx context.Context, topic string) error {
			return roundTrip(ctx, topic, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
		}})
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	for name, wanted := range acks {
		all = append(all, check{"acks-" + name, func(ctx context.Context, topic string) error {
			options := []kgo.Opt{kgo.RequiredAcks(wanted)}
			if name != "all" {
				options = append(options, kgo.DisableIdempotentWrite())
			}
			return roundTrip(ctx, topic, options...)
		}})
	}
	return all
}

// Producing and consuming.

func roundTrip(ctx context.Context, topic string, options ...kgo.Opt) error {
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	now := time.UnixMilli(time.Now().UnixMilli())
	var sent []*kgo.Record
	for n := range 500 {
		sent = append(sent, &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "key-%d", n), Value: []byte(strings.Repeat(fmt.Sprintf("value %d ", n), 20)),
			Headers:   []kgo.RecordHeader{{Key: "n", Value: []byte(strconv.Itoa(n))}, {Key: "null", Value: nil}},
			Timestamp: now.Add(time.Duration(n) * time.Millisecond),
		})
	}
	if err := produce(ctx, sent, options...); err != nil {
		return err
	}
	found, err := consume(ctx, topic, 1, 500)
	if err != nil {
		return err
	}
	for n, record := range found {
		same := record.Offset == int64(n) && string(record.Key) == string(sent[n].Key) &&
			string(record.Value) == string(sent[n].Value) && record.Timestamp.Equal(sent[n].Timestamp) &&
			len(record.Headers) == 2 && string(record.Headers[0].Value) == strconv.Itoa(n) && record.Headers[1].Value == nil
		if !same {
			return fmt.Errorf("record %d came back as %+v", n, record)
		}
	}
	return nil
}

func nullsAndEmpties(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	pairs := [][2][]byte{{nil, nil}, {{}, {}}, {nil, {}}, {{}, nil}, {[]byte("gone"), nil}, {[]byte("k"), []byte("v")}}
	var sent []*kgo.Record
	for _, pair := range pairs {
		sent = append(sent, &kgo.Record{Topic: topic, Key: pair[0], Value: pair[1]})
	}
	if err := produce(ctx, sent); err != nil {
		return err
	}
	found, err := consume(ctx, topic, 1, len(pairs))
	if err != nil {
		return err
	}
	for n, record := range found {
		if (record.Key == nil) != (pairs[n][0] == nil) || (record.Value == nil) != (pairs[n][1] == nil) {
			return fmt.Errorf("record %d came back as %+v", n, record)
		}
	}
	return nil
}

func idempotenceInOrder(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 3, nil); err != nil {
		return err
	}
	var sent []*kgo.Record
	for n := range 9000 {
		sent = append(sent, &kgo.Record{Topic: topic, Partition: int32(n % 3), Value: []byte(strconv.Itoa(n))})
	}
	if err := produce(ctx, sent, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(1000)); err != nil {
		return err
	}
	found, err := consume(ctx, topic, 3, 9000)
	if err != nil {
		return err
	}
	next := map[int32]int{0: 0, 1: 1, 2: 2}
	for _, record := range found {
		if string(record.Value) != strconv.Itoa(next[record.Partition]) {
			return fmt.Errorf("partition %d: expected %d, got %s", record.Partition, next[record.Partition], record.Value)
		}
		next[record.Partition] += 3
	}
	return nil
}

func logAppendTime(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, map[string]string{"message.timestamp.type": "LogAppendTime"}); err != nil {
		return err
	}
	before := time.Now().Add(-time.Second)
	if err := produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte("v"), Timestamp: time.UnixMilli(1000)}}); err != nil {
		return err
	}
	found, err := consume(ctx, topic, 1, 1)
	if err != nil {
		return err
	}
	if found[0].Timestamp.Before(before) || found[0].Attrs.TimestampType() != 1 {
		return fmt.Errorf("timestamp %v of type %d", found[0].Timestamp, found[0].Attrs.TimestampType())
	}
	return nil
}

func bigRecords(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	value := []byte(strings.Repeat("x", 900_000))
	if err := produce(ctx, []*kgo.Record{{Topic: topic, Value: value}, {Topic: topic, Value: value}}); err != nil {
		return err
	}
	found, err := consume(ctx, topic, 1, 2)
	if err == nil && len(found[1].Value) != len(value) {
		return fmt.Errorf("%d bytes came back", len(found[1].Value))
	}
	return err
}

func recordTooLarge(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, map[string]string{"max.message.bytes": "10000"}); err != nil {
		return err
	}
	err := produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte(strings.Repeat("x", 20_000))}}, kgo.ProducerBatchCompression(kgo.NoCompression()))
	return fails(err, kerr.MessageTooLarge)
}

func keylessOnCompacted(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		return err
	}
	if err := produce(ctx, []*kgo.Record{{Topic: topic, Key: []byte("k"), Value: []byte("v")}}); err != nil {
		return err
	}
	return fails(produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte("v")}}), kerr.InvalidRecord)
}

func autoCreation(ctx context.Context, topic string) error {
	return produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte("v")}}, kgo.AllowAutoTopicCreation())
}

func unknownTopic(ctx context.Context, topic string) error {
	return fails(produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte("v")}}, kgo.UnknownTopicRetries(1)), kerr.UnknownTopicOrPartition)
}

func insideABatch(ctx context.Context, topic string) error {
	if err := fill(ctx, topic, 1000); err != nil {
		return err
	}
	for _, start := range []int{1, 499, 999} {
		at := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(int64(start))}}
		found, err := consumeFrom(ctx, at, 1000-start)
		if err != nil {
			return err
		}
		if found[0].Offset != int64(start) || string(found[0].Value) != strconv.Itoa(start) {
			return fmt.Errorf("asked for %d, got %d", start, found[0].Offset)
		}
	}
	return nil
}

func offsetsByTime(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for _, timestamp := range []int64{now, now + 500, now + 100} {
		if err := produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte("v"), Timestamp: time.UnixMilli(timestamp)}}); err != nil {
			return err
		}
	}
	wanted := []struct {
		name   string
		list   func() (kadm.ListedOffsets, error)
		offset int64
	}{
		{"start", func() (kadm.ListedOffsets, error) { return admin.ListStartOffsets(ctx, topic) }, 0},
		{"end", func() (kadm.ListedOffsets, error) { return admin.ListEndOffsets(ctx, topic) }, 3},
		{"committed", func() (kadm.ListedOffsets, error) { return admin.ListCommittedOffsets(ctx, topic) }, 3},
		{"time", func() (kadm.ListedOffsets, error) { return admin.ListOffsetsAfterMilli(ctx, now+50, topic) }, 1},
		{"max timestamp", func() (kadm.ListedOffsets, error) { return admin.ListMaxTimestampOffsets(ctx, topic) }, 1},
	}
	for _, each := range wanted {
		listed, err := each.list()
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return err
		}
		if found, _ := listed.Lookup(topic, 0); found.Offset != each.offset {
			return fmt.Errorf("%s: expected %d, got %d", each.name, each.offset, found.Offset)
		}
	}
	return nil
}

func aThousandPartitions(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1000, nil); err != nil {
		return err
	}
	var sent []*kgo.Record
	for n := range 1000 {
		sent = append(sent, &kgo.Record{Topic: topic, Partition: int32(n), Value: []byte(strconv.Itoa(n))})
	}
	if err := produce(ctx, sent, kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		return err
	}
	found, err := consume(ctx, topic, 1000, 1000)
	if err != nil {
		return err
	}
	seen := map[int32]bool{}
	for _, record := range found {
		seen[record.Partition] = string(record.Value) == strconv.Itoa(int(record.Partition))
	}
	if len(seen) != 1000 {
		return fmt.Errorf("records of %d partitions", len(seen))
	}
	_, err = admin.DeleteTopics(ctx, topic)
	return err
}

// Administration.

func createDescribeDelete(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 13, nil); err != nil {
		return err
	}
	topics, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	described := topics[topic]
	if described.Err != nil || len(described.Partitions) != 13 || described.ID == (kadm.TopicID{}) {
		return fmt.Errorf("described as %+v", described)
	}
	for _, partition := range described.Partitions {
		if partition.Leader < 0 || len(partition.ISR) != 1 || partition.ISR[0] != partition.Leader {
			return fmt.Errorf("partition %+v", partition)
		}
	}
	deleted, err := admin.DeleteTopics(ctx, topic)
	if err != nil {
		return err
	}
	if deleted[topic].Err != nil {
		return deleted[topic].Err
	}
	return eventually(ctx, func() (bool, error) {
		topics, err := admin.ListTopics(ctx, topic)
		return err == nil && errors.Is(topics[topic].Err, kerr.UnknownTopicOrPartition), err
	})
}

func refusedTopics(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	wanted := []struct {
		name        string
		partitions  int32
		replication int16
		config      map[string]*string
		refusal     error
	}{
		{topic, 1, 1, nil, kerr.TopicAlreadyExists},
		{"a/b", 1, 1, nil, kerr.InvalidTopicException},
		{topic + "-x", 0, 1, nil, kerr.InvalidPartitions},
		{topic + "-x", 1, 3, nil, kerr.InvalidReplicationFactor},
		{topic + "-x", 1, 1, map[string]*string{"no.such": kadm.StringPtr("1")}, kerr.InvalidConfig},
	}
	for _, each := range wanted {
		created, err := admin.CreateTopics(ctx, each.partitions, each.replication, each.config, each.name)
		if err != nil {
			return err
		}
		if err := fails(created[each.name].Err, each.refusal); err != nil {
			return err
		}
	}
	return nil
}

func addPartitions(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 2, nil); err != nil {
		return err
	}
	updated, err := admin.UpdatePartitions(ctx, 5, topic)
	if err != nil || updated.Error() != nil {
		return errors.Join(err, updated.Error())
	}
	return eventually(ctx, func() (bool, error) {
		topics, err := admin.ListTopics(ctx, topic)
		return err == nil && len(topics[topic].Partitions) == 5, err
	})
}

func configs(ctx context.Context, topic string) error {
	if err := create(ctx, topic, 1, map[string]string{"max.message.bytes": "5000"}); err != nil {
		return err
	}
	value := func(name string) (kadm.Config, error) {
		described, err := admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return kadm.Config{}, err
		}
		of, err := described.On(topic, nil)
		if err != nil || of.Err != nil {
			return kadm.Config{}, errors.Join(err, of.Err)
		}
		for _, config := range of.Configs {
			if config.Key == name {
				return config, nil
			}
		}
		return kadm.Config{}, fmt.Errorf("no config %s", name)
	}
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("1000")}}, topic)
	if err != nil || altered[0].Err != nil {
		return errors.Join(err, altered[0].Err)
	}
	err = eventually(ctx, func() (bool, error) {
		config, err := value("retention.ms")
		return err == nil && config.MaybeValue() == "1000" && config.Source.String() == "DYNAMIC_TOPIC_CONFIG", err
	})
	if err != nil {
		return err
	}
	if config, err := value("max.message.bytes"); err != nil || config.MaybeValue() != "5000" || len(config.Synonyms) == 0 {
		return fmt.Errorf("max.message.bytes is %+v (%w)", config, err)
	}
	bad, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("soon")}}, topic)
	if err != nil {
		return err
	}
	return fails(bad[0].Err, kerr.InvalidConfig)
}

func deleteRecords(ctx context.Context, topic string) error {
	if err := fill(ctx, topic, 100); err != nil {
		return err
	}
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: topic, Partition: 0, At: 60})
	deleted, err := admin.DeleteRecords(ctx, before)
	if err != nil || deleted.Error() != nil {
		return errors.Join(err, deleted.Error())
	}
	found, err := consume(ctx, topic, 1, 40)
	if err == nil && found[0].Offset != 60 {
		return fmt.Errorf("the log starts at %d", found[0].Offset)
	}
	return err
}

func logDirs(ctx context.Context, topic string) error {
	if err := fill(ctx, topic, 10); err != nil {
		return err
	}
	described, err := admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return err
	}
	for _, folder := range described.Sorted() {
		if partition, ok := folder.Topics.Lookup(topic, 0); ok && folder.Err == nil && partition.Size > 60 {
			return nil
		}
	}
	return fmt.Errorf("the partition is not in %+v", described)
}

func cluster(ctx context.Context, _ string) error {
	metadata, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if len(metadata.Brokers) != 1 || metadata.Controller != metadata.Brokers[0].NodeID || len(metadata.Cluster) != 22 {
		return fmt.Errorf("described as %+v", metadata)
	}
	if address := fmt.Sprintf("%s:%d", metadata.Brokers[0].Host, metadata.Brokers[0].Port); address != bootstrap {
		return fmt.Errorf("the broker says it is at %s", address)
	}
	return nil
}

func producers(ctx context.Context, topic string) error {
	if err := fill(ctx, topic, 7); err != nil {
		return err
	}
	var of kadm.TopicsSet
	of.Add(topic, 0)
	described, err := admin.DescribeProducers(ctx, of)
	if err != nil {
		return err
	}
	active := described.SortedProducers()
	if len(active) != 1 || active[0].LastSequence != 6 {
		return fmt.Errorf("described as %+v", active)
	}
	return nil
}

func apiVersions(ctx context.Context, _ string) error {
	versions, err := admin.ApiVersions(ctx)
	if err != nil {
		return err
	}
	for _, broker := range versions {
		if broker.Err != nil {
			return broker.Err
		}
		if highest, ok := broker.KeyMaxVersion(1); !ok || highest < 17 {
			return fmt.Errorf("Fetch up to version %d", highest)
		}
	}
	return nil
}

func aclsNeedAnAuthorizer(ctx context.Context, _ string) error {
	described, err := admin.DescribeACLs(ctx, kadm.NewACLs().AnyResource().Allow().AllowHosts().Operations(kadm.OpAny))
	if err != nil {
		return fails(err, kerr.SecurityDisabled)
	}
	for _, each := range described {
		if each.Err != nil {
			return fails(each.Err, kerr.SecurityDisabled)
		}
	}
	return errors.New("it went well")
}

// What the checks share.

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, options...)...)
	if err != nil {
		panic(err)
	}
	return made
}

func create(ctx context.Context, topic string, partitions int32, config map[string]string) error {
	settings := map[string]*string{}
	for key, value := range config {
		settings[key] = kadm.StringPtr(value)
	}
	created, err := admin.CreateTopics(ctx, partitions, 1, settings, topic)
	if err != nil {
		return err
	}
	if created[topic].Err != nil {
		return created[topic].Err
	}
	return eventually(ctx, func() (bool, error) {
		topics, err := admin.ListTopics(ctx, topic)
		return err == nil && topics[topic].Err == nil && len(topics[topic].Partitions) == int(partitions), err
	})
}

func fill(ctx context.Context, topic string, count int) error {
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	var sent []*kgo.Record
	for n := range count {
		sent = append(sent, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(n))})
	}
	return produce(ctx, sent, kgo.ProducerLinger(100*time.Millisecond))
}

func produce(ctx context.Context, records []*kgo.Record, options ...kgo.Opt) error {
	producer := client(options...)
	defer producer.Close()
	return producer.ProduceSync(ctx, records...).FirstErr()
}

func consume(ctx context.Context, topic string, partitions, count int) ([]*kgo.Record, error) {
	at := map[string]map[int32]kgo.Offset{topic: {}}
	for partition := range partitions {
		at[topic][int32(partition)] = kgo.NewOffset().AtStart()
	}
	return consumeFrom(ctx, at, count)
}

func consumeFrom(ctx context.Context, at map[string]map[int32]kgo.Offset, count int) ([]*kgo.Record, error) {
	consumer := client(kgo.ConsumePartitions(at), kgo.FetchMaxWait(200*time.Millisecond))
	defer consumer.Close()
	var records []*kgo.Record
	for len(records) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(records), count, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}

func eventually(ctx context.Context, condition func() (bool, error)) error {
	for {
		holds, err := condition()
		if holds {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %w", errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func fails(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return fmt.Errorf("expected %v, got %v", expected, err)
}

func suffix() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	return hex.EncodeToString(random)
}
