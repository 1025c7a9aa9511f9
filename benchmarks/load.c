/* A load generator with librdkafka in C, because a Python client is too slow to reach the limits of a broker.
 *
 *   load produce BOOTSTRAP TOPIC PARTITIONS COUNT SIZE [name=value ...]
 *   load consume BOOTSTRAP TOPIC PARTITIONS COUNT SIZE [name=value ...]
 *   load latency BOOTSTRAP TOPIC PARTITIONS COUNT SIZE RATE [name=value ...]
 *
 * Prints one line of JSON. Further arguments are librdkafka settings; `connections=N` starts N producers, each
 * with its own connection and partition.
 */
#include <librdkafka/rdkafka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_PRODUCERS 64

static int64_t delivered, failed;
static int connections = 1;
/* Produce requests that each client has sent, by its latest statistics. */
static int64_t requests[MOST_PRODUCERS];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk, (void)opaque;
    if (message->err) {
        if (!failed++)
            fprintf(stderr, "delivery failed: %s\n", rd_kafka_err2str(message->err));
    } else {
        delivered++;
    }
}

/* The statistics are JSON; every broker in them counts its requests by API. */
static int on_statistics(rd_kafka_t *rk, char *json, size_t length, void *opaque) {
    int64_t sum = 0;
    (void)rk, (void)length;
    for (char *at = json; (at = strstr(at, "\"Produce\":")); at++)
        sum += atoll(at + strlen("\"Produce\":"));
    *(int64_t *)opaque = sum;
    return 0;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "%s\n", error);
        exit(2);
    }
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char error[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, error, sizeof error);
    if (!rk) {
        fprintf(stderr, "%s\n", error);
        exit(2);
    }
    return rk;
}

static rd_kafka_conf_t *configured(const char *bootstrap, int argc, char **argv) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    for (int i = 0; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) {
            fprintf(stderr, "not a setting: %s\n", argv[i]);
            exit(2);
        }
        *equals = 0;
        if (!strcmp(argv[i], "connections"))
            connections = atoi(equals + 1);
        else
            set(conf, argv[i], equals + 1);
    }
    return conf;
}

static void enqueue(rd_kafka_t *rk, rd_kafka_topic_t *topic, int partition, char *payload, size_t size, int flags) {
    while (rd_kafka_produce(topic, partition, flags, payload, size, NULL, 0, NULL) == -1) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            fprintf(stderr, "%s\n", rd_kafka_err2str(rd_kafka_last_error()));
            exit(2);
        }
        rd_kafka_poll(rk, 5);
    }
}

static char *random_payload(size_t size) {
    char *payload = malloc(size + 1);
    srand(42);
    for (size_t i = 0; i < size; i++)
        payload[i] = 'a' + rand() % 26;
    return payload;
}

/* Until every record is answered, and a moment longer, so that the last statistics have come too. */
static double settle(rd_kafka_t **rk) {
    while (1) {
        int waiting = 0;
        for (int i = 0; i < connections; i++) {
            rd_kafka_poll(rk[i], connections == 1 ? 5 : 0);
            waiting += rd_kafka_outq_len(rk[i]) > 0;
        }
        if (!waiting)
            break;
        usleep(200);
    }
    double end = now();
    for (double until = end + 0.25; now() < until; usleep(10000))
        for (int i = 0; i < connections; i++)
            rd_kafka_poll(rk[i], 0);
    return end;
}

static int produce(rd_kafka_conf_t *conf, const char *name, int partitions, int64_t count, size_t size) {
    rd_kafka_t *rk[MOST_PRODUCERS];
    rd_kafka_topic_t *topic[MOST_PRODUCERS];
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_stats_cb(conf, on_statistics);
    set(conf, "statistics.interval.ms", "100");
    for (int i = 0; i < connections; i++) {
        rd_kafka_conf_t *own = rd_kafka_conf_dup(conf);
        rd_kafka_conf_set_opaque(own, &requests[i]);
        rk[i] = client(RD_KAFKA_PRODUCER, own);
        topic[i] = rd_kafka_topic_new(rk[i], name, NULL);
        const struct rd_kafka_metadata *metadata;
        if (!rd_kafka_metadata(rk[i], 0, topic[i], &metadata, 10000))
            rd_kafka_metadata_destroy(metadata);
    }
    char *payload = random_payload(size);
    double begin = now();
    for (int64_t i = 0; i < count; i++) {
        int at = (int)(i % connections);
        /* Not copied: the payload stays as it is, and the client should cost as little as it can. */
        enqueue(rk[at], topic[at], (int)(i % partitions), payload, size, 0);
        if (i % 1000 < connections)
            rd_kafka_poll(rk[at], 0);
    }
    double seconds = settle(rk) - begin;
    int64_t sent = 0;
    for (int i = 0; i < connections; i++)
        sent += requests[i];
    printf("{\"records\": %" PRId64 ", \"failed\": %" PRId64 ", \"seconds\": %.3f, \"records_per_s\": %.0f, "
           "\"mb_per_s\": %.1f, \"requests_per_s\": %.0f}\n",
           delivered, failed, seconds, delivered / seconds, delivered * (double)size / seconds / 1e6,
           sent / seconds);
    return failed || delivered != count;
}

static int consume(rd_kafka_conf_t *conf, const char *name, int partitions, int64_t count, size_t size) {
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_message_t *messages[1000];
    for (int i = 0; i < partitions; i++)
        rd_kafka_consume_start_queue(topic, i, RD_KAFKA_OFFSET_BEGINNING, queue);
    int64_t taken = 0;
    double begin = now(), first = 0, deadline = begin + 120;
    while (taken < count && now() < deadline) {
        ssize_t got = rd_kafka_consume_batch_queue(queue, 100, messages, 1000);
        for (ssize_t i = 0; i < got; i++) {
            if (!messages[i]->err && !taken++)
                first = now();
            rd_kafka_message_destroy(messages[i]);
        }
    }
    /* Finding the offset takes librdkafka half a second of timers: count from the first record on. */
    double seconds = now() - first;
    printf("{\"records\": %" PRId64 ", \"seconds\": %.3f, \"first_after\": %.3f, \"records_per_s\": %.0f, "
           "\"mb_per_s\": %.1f}\n",
           taken, seconds, first - begin, taken / seconds, taken * (double)size / seconds / 1e6);
    return taken != count;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One thread, one record at a time at a fixed rate; the consumer is the same process, so one clock serves. */
static int latency(const char *bootstrap, rd_kafka_conf_t *conf, const char *name, int64_t count, size_t size,
                   double rate) {
    rd_kafka_conf_t *consumer_conf = configured(bootstrap, 0, NULL);
    set(consumer_conf, "fetch.wait.max.ms", "500");
    rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, consumer_conf);
    rd_kafka_topic_t *in = rd_kafka_topic_new(consumer, name, NULL);
    rd_kafka_consume_start(in, 0, RD_KAFKA_OFFSET_END);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *out = rd_kafka_topic_new(producer, name, NULL);
    char *payload = random_payload(size < sizeof(double) ? sizeof(double) : size);
    double *samples = malloc(sizeof(double) * count);
    double warm = now() + 2.0, next = now();
    int64_t taken = 0, sent = 0;
    while (taken < count && now() < warm + count / rate + 30) {
        double t = now();
        if (t >= next && sent < count + (int64_t)(3 * rate)) {
            memcpy(payload, &t, sizeof t);
            enqueue(producer, out, 0, payload, size, RD_KAFKA_MSG_F_COPY);
            next += 1 / rate;
            sent++;
        }
        rd_kafka_poll(producer, 0);
        rd_kafka_message_t *message = rd_kafka_consume(in, 0, 1);
        if (!message)
            continue;
        if (!message->err && now() > warm) {
            memcpy(&t, message->payload, sizeof t);
            samples[taken++] = now() - t;
        }
        rd_kafka_message_destroy(message);
    }
    if (!taken)
        return 1;
    qsort(samples, taken, sizeof(double), by_value);
    printf("{\"records\": %" PRId64 ", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f}\n", taken,
           samples[taken / 2] * 1e3, samples[(int64_t)(taken * 0.99)] * 1e3, samples[(int64_t)(taken * 0.999)] * 1e3);
    return taken != count;
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "usage: load produce|consume|latency BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ...\n");
        return 2;
    }
    int partitions = atoi(argv[4]);
    int64_t count = atoll(argv[5]);
    size_t size = (size_t)atoll(argv[6]);
    if (!strcmp(argv[1], "produce"))
        return produce(configured(argv[2], argc - 7, argv + 7), argv[3], partitions, count, size);
    if (!strcmp(argv[1], "consume"))
        return consume(configured(argv[2], argc - 7, argv + 7), argv[3], partitions, count, size);
    if (!strcmp(argv[1], "latency") && argc > 7)
        return latency(argv[2], configured(argv[2], argc - 8, argv + 8), argv[3], count, size, atof(argv[7]));
    return 2;
}
