#!/bin/sh
# Makes the keys and passwords of docker-compose.yml in deploy/secrets, each once: what is there stays as it is, since
# the databases remember their passwords. The folder is closed to others; the files in it are not, because in their
# containers accounts without rights read them.
set -eu

umask 022
cd "$(dirname "$0")"
mkdir -p secrets
chmod 700 secrets
cd secrets

random() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }

for name in secret admin-token mysql-password postgres-password rabbitmq-password grafana-password; do
  [ -s "$name" ] || random >"$name"
done

cat >rabbitmq.conf <<CONF
default_user = sluice
default_pass = $(cat rabbitmq-password)
CONF

cat >sluice.env <<ENV
SLUICE_AMQP_URL=amqp://sluice:$(cat rabbitmq-password)@rabbitmq:5672/
SLUICE_DATABASE_URL=mysql://sluice:$(cat mysql-password)@mysql:3306/sluice
ENV

cat >sluice.postgres.env <<ENV
SLUICE_AMQP_URL=amqp://sluice:$(cat rabbitmq-password)@rabbitmq:5672/
SLUICE_DATABASE_URL=postgres://sluice:$(cat postgres-password)@postgres:5432/sluice
ENV
