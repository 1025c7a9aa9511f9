SET 'auto.offset.reset' = 'earliest';

CREATE STREAM IF NOT EXISTS sales (shop VARCHAR KEY, amount DOUBLE)
  WITH (kafka_topic = 'sales', value_format = 'JSON');

CREATE TABLE IF NOT EXISTS kpis AS
  SELECT shop,
         FORMAT_TIMESTAMP(FROM_UNIXTIME(WINDOWSTART), 'HH:mm') AS minute,
         COUNT(*) AS sales,
         SUM(amount) AS revenue,
         MAX(amount) AS best
  FROM sales WINDOW TUMBLING (SIZE 1 MINUTE)
  GROUP BY shop
  EMIT CHANGES;
