SET 'auto.offset.reset' = 'earliest';

CREATE STREAM sales (shop VARCHAR KEY, amount DOUBLE)
  WITH (kafka_topic = 'sales', value_format = 'JSON');

CREATE TABLE kpis AS
  SELECT shop,
         FORMAT_TIMESTAMP(FROM_UNIXTIME(WINDOWSTART), 'HH:mm') AS minute,
         COUNT(*) AS sales,
         SUM(amount) AS revenue,
         MAX(amount) AS best
  FROM sales WINDOW TUMBLING (SIZE 1 MINUTE)
  GROUP BY shop
  EMIT CHANGES;
