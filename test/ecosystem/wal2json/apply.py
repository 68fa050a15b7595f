# Applies what pg_recvlogical has written of wal2json's second format to another database: apply.py FILE DSN.
# It knows nothing of either side's tables but their names and columns.  How far it has come is a row of that
# database, changed in the transaction that applies, so it can be killed at any time.  What the file has twice, since
# pg_recvlogical had not said that it was written, is known by the position of its commit.

import json
import sys
import time

import psycopg2
from psycopg2 import sql

path, dsn = sys.argv[1:]
target = psycopg2.connect(dsn)
columns = {}


def position(lsn):
    high, low = lsn.split('/')
    return int(high, 16) << 32 | int(low, 16)


def name(change):
    return sql.Identifier(change['schema'], change['table'])


def typed(column):
    return sql.SQL('%s::' + column['type'].replace('%', '%%'))


# what the table has got since
def add_columns(cursor, change):
    known = columns.get((change['schema'], change['table']))
    if known is None:
        cursor.execute('SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped',
                       (name(change).as_string(target),))
        known = columns[change['schema'], change['table']] = {row[0] for row in cursor}
    for column in change['columns']:
        if column['name'] not in known:
            cursor.execute(sql.SQL('ALTER TABLE {} ADD COLUMN {} ' + column['type']).format(name(change), sql.Identifier(column['name'])))
            known.add(column['name'])


# one row, since a table without a key may have several that are the same
def where(change):
    condition, values = [], []
    for column in change['identity']:
        if column['value'] is None:
            condition.append(sql.SQL('{} IS NULL').format(sql.Identifier(column['name'])))
        else:
            condition.append(sql.SQL('{} = ').format(sql.Identifier(column['name'])) + typed(column))
            values.append(column['value'])
    return sql.SQL('ctid = (SELECT ctid FROM {} WHERE ').format(name(change)) + sql.SQL(' AND ').join(condition) + sql.SQL(' LIMIT 1)'), values


# the statement that does the same
def statement(cursor, change):
    action = change['action']
    if action == 'T':
        return cursor.mogrify(sql.SQL('TRUNCATE {}').format(name(change)))
    if action in 'IU':
        add_columns(cursor, change)
        names = [sql.Identifier(column['name']) for column in change['columns']]
        types = [typed(column) for column in change['columns']]
        values = [column['value'] for column in change['columns']]
    if action == 'I':
        return cursor.mogrify(sql.SQL('INSERT INTO {} ({}) VALUES (').format(name(change), sql.SQL(', ').join(names)) +
                              sql.SQL(', ').join(types) + sql.SQL(')'), values)
    condition, identity = where(change)
    if action == 'D':
        return cursor.mogrify(sql.SQL('DELETE FROM {} WHERE ').format(name(change)) + condition, identity)
    sets = [sql.SQL('{} = ').format(one) + kind for one, kind in zip(names, types)]
    return cursor.mogrify(sql.SQL('UPDATE {} SET ').format(name(change)) + sql.SQL(', ').join(sets) + sql.SQL(' WHERE ') + condition,
                          values + identity)


def lines():
    rest = ''
    with open(path) as source:
        while True:
            rest += source.readline()
            if rest.endswith('\n'):
                try:
                    yield json.loads(rest, parse_int=str, parse_float=str)
                except json.JSONDecodeError:
                    # cut off as pg_recvlogical was killed; all of the transaction comes again
                    yield {'action': 'cut off'}
                rest = ''
            else:
                time.sleep(0.05)


with target.cursor() as cursor:
    cursor.execute('SELECT lsn FROM applied')
    done = int(cursor.fetchone()[0])
target.commit()
changes = None
for line in lines():
    if line['action'] == 'B':
        changes = []
    elif line['action'] == 'cut off':
        changes = None
    elif line['action'] != 'C':
        changes.append(line)
    elif changes and position(line['lsn']) > done:
        done = position(line['lsn'])
        with target.cursor() as cursor:
            statements = [statement(cursor, change) for change in changes]
            statements.append(cursor.mogrify('UPDATE applied SET lsn = %s', (done,)))
            cursor.execute(b';'.join(statements))
        target.commit()
