#!/usr/bin/python3
"""differential.py: the same statements on twins of tables, and in all tiers.

    differential.py [options]       (the connection is libpq's: PGHOST, ...)

Makes random tables five times: heap tables, memory-optimized ones whose
statements the server's executor runs (mot.jit = off), and memory-optimized
ones whose statements run without it from their first execution on, these two as
foreign tables and as ordinary ones.  Then it
prepares random statements and executes each with several sets of parameters
on all of them.  The answers must be equal: rows, counts, errors with their
messages.  In between, and at the end, the tables' contents are compared.

    --seed N         to repeat a run (printed at its beginning)
    --statements N   executions (default 3000); tables are made anew every 1500
    --settings "name=value ..."   for those without the executor, besides mot.jit
    --reports        statements that group and join many rows (see below)
    --protocol simple|unnamed   nobody prepares the statements: they come as text with
                     their values in it, or as unnamed ones of the extended protocol
    --verbose        print every statement

One difference is right: heap and memory-optimized tables can have different
plans, and so an expression that fails for some row may never be evaluated for
it in one of them.  If exactly one of both fails the change is rolled back
everywhere and not counted as a difference; but the two kinds of
memory-optimized tables of each door have the same plans and must agree.  And if several rows
make a statement fail, the first of them that is met names the error.

With --reports tables are larger, and statements group, join and aggregate their rows: in transactions of all
levels, behind changes of their own, with parallel workers and without.  There it is src/batch
that some of the twins have and others have not, with machine code and without.  Of keys that are equal and
look different (0 and -0, 1.0 and 1.00, equals of a collation) a group shows
the first that came: which is the same one where rows come in the same order, and else compared as an equal.
"""

import argparse
import collections
import ctypes
import decimal
import random
import re
import sys

import psycopg2
import psycopg2.extensions

BASIC = {
    'int2': ['0', '1', '-1', '2', '7', '100', '32767', '-32768'],
    'int4': ['0', '1', '-1', '2', '3', '7', '42', '1000', '2147483647', '-2147483648'],
    'int8': ['0', '1', '-1', '2', '3', '42', '9223372036854775807', '-9223372036854775808', '2147483648'],
    'numeric': ['0', '0.0', '1', '1.10', '1.1', '-1', '2.5', '1e30', 'NaN', '0.00001', '-99999.99',
                '123456789012345678901234567890.5'],
    'numeric(6,2)': ['0', '1.1', '-1', '9999.99', '0.01', 'NaN'],
    'float8': ['0', '-0', '1.5', '-2.25', 'NaN', 'Infinity', '-Infinity', '1e308', '1e-307'],
    'float4': ['0', '-0', '1.5', '-2.25', 'NaN', 'Infinity', '1e38'],
    'bool': ['t', 'f'],
    'text': ['', 'a', 'A', 'b', 'aa', 'a ', 'ab', 'z', '\u00e4', '\u00c4', 'ab%c', 'x' * 300, '1', '-7'],
    'varchar(8)': ['', 'a', 'A', 'b', 'ab', '\u00e4', 'abcdefgh'],
    'char(4)': ['', 'a', 'A', 'b', 'ab', 'abcd'],
    'date': ['2000-01-01', '1999-12-31', '2024-02-29', '2026-10-25', 'infinity', '-infinity'],
    'timestamp': ['2000-01-01 00:00:00', '1999-12-31 23:59:59.999999', '2026-10-25 02:30:00', 'infinity'],
    'timestamptz': ['2000-01-01 00:00:00+00', '2026-10-25 00:30:00+00', '2026-10-25 01:30:00+00', '-infinity'],
    'time': ['00:00:00', '12:34:56.789', '23:59:59.999999'],
    'uuid': ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
             '12345678-9abc-def0-1234-56789abcdef0'],
    'bytea': ['\\x', '\\x00', '\\x0001', '\\xff', '\\x616263'],
}
PLAIN = ['int4[]', 'interval', 'jsonb']         # not in keys
EXTRA = {
    'int4[]': ['{}', '{1}', '{1,2,3}', '{NULL}'],
    'interval': ['0', '1 day', '-1 month', '25:00:00'],
    'jsonb': ['{}', '[1, 2]', '"a"', 'null'],
}
VALUES = dict(BASIC, **EXTRA)
INTS = ('int2', 'int4', 'int8')
NUMBERS = INTS + ('numeric', 'numeric(6,2)', 'float8', 'float4')
TEXTS = ('text', 'varchar(8)', 'char(4)')


def quote(text):
    return "'" + text.replace("'", "''") + "'"


class Column:
    def __init__(self, name, type_, notnull, collation):
        self.name, self.type, self.notnull, self.collation = name, type_, notnull, collation


class Table:
    def __init__(self, rnd, name):
        self.rnd, self.name = rnd, name
        nkeys = rnd.choice([1, 1, 1, 2, 2, 3])
        self.columns = []
        for i in range(rnd.randint(nkeys + 2, nkeys + 6)):
            key = i < nkeys
            type_ = rnd.choice(['int4', 'int4', 'int8'] + list(BASIC)) if key or rnd.random() < 0.85 else rnd.choice(PLAIN)
            collation = ''
            if type_ in TEXTS and rnd.random() < 0.5:
                collation = rnd.choice(['"C"', '"C"', '"en-x-icu"', '"default"'])
            self.columns.append(Column('c%d' % i, type_, key or rnd.random() < 0.3, collation))
        self.key = self.columns[:nkeys]
        self.indexes = []
        for _ in range(rnd.randint(0, 2)):
            candidates = [c for c in self.columns if c.type in BASIC]
            columns = rnd.sample(candidates, k=min(rnd.randint(1, 2), len(self.key) + 1, len(candidates)))
            self.indexes.append(columns)

    def definitions(self, door):
        columns = []
        for c in self.columns:
            columns.append('%s %s%s%s' % (c.name, c.type, ' COLLATE ' + c.collation if c.collation else '',
                                          ' NOT NULL' if c.notnull else ''))
            if c.type == 'int4' and c not in self.key and c.name == 'c3':
                columns[-1] += ' CHECK (c3 <> 1000)'
        columns.append('PRIMARY KEY (%s)' % ', '.join(c.name for c in self.key))
        yield 'CREATE %sTABLE %s (%s) %s' % ('FOREIGN ' if door.startswith('SERVER') else '', self.name,
                                             ', '.join(columns), door)
        rnd = random.Random(repr(columns))
        for i, columns in enumerate(self.indexes):
            yield 'CREATE %sINDEX %s_i%d ON %s (%s)' % (
                'UNIQUE ' if rnd.random() < 0.2 else '', self.name, i, self.name,
                ', '.join(c.name + rnd.choice(['', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST']) for c in columns))


class ReportTable(Table):
    """Many rows, and few values in each column but the first."""

    def __init__(self, rnd, name):
        self.rnd, self.name = rnd, name
        types = [rnd.choice(['int4', 'int8', 'text'] + list(BASIC)) for _ in range(rnd.randint(4, 8))]
        self.columns = [Column('c0', 'int4', True, '')]
        for i, type_ in enumerate(types):
            collation = rnd.choice(['', '', '"C"', 'caseless']) if type_ in TEXTS else ''
            self.columns.append(Column('c%d' % (i + 1), type_, rnd.random() < 0.3, collation))
        self.key = self.columns[:1]
        self.indexes = []

    def rows(self, first, n):
        rnd = self.rnd
        for i in range(first, first + n):
            values = [str(i)]
            for c in self.columns[1:]:
                if c.type in INTS and rnd.random() < 0.8:
                    values.append(str(rnd.randint(0, 40)))
                else:
                    values.append('NULL' if not c.notnull and rnd.random() < 0.15 else quote(rnd.choice(VALUES[c.type])))
            yield '(%s)' % ', '.join(values)


class Maker:
    """One random statement."""

    def __init__(self, rnd, tables, plain=False):
        self.rnd, self.tables, self.plain = rnd, tables, plain
        self.params = []                # types
        self.sources = []               # (alias, Table) that expressions may use
        self.subselects = 2             # that expressions may still have

    def param(self, type_):
        if self.plain and type_.endswith('[]') and type_[:-2] in VALUES:
            return "ARRAY[%s]" % ', '.join(self.literal(type_[:-2]) for _ in range(self.rnd.randint(1, 3)))
        if self.plain:
            return self.literal(type_)
        same = [i for i, t in enumerate(self.params) if t == type_]
        if same and self.rnd.random() < 0.3:
            return '$%d' % (self.rnd.choice(same) + 1)
        self.params.append(type_)
        return '$%d' % len(self.params)

    def literal(self, type_):
        if self.rnd.random() < 0.08:
            return 'NULL::' + type_
        return '%s::%s' % (quote(self.rnd.choice(VALUES[type_])), type_)

    def column(self, types):
        found = [a + '.' + c.name for a, t in self.sources for c in t.columns if c.type in types]
        return self.rnd.choice(found) if found else None

    def subselect(self, type_):
        """What is between its parentheses: a value of a type ('': only whether there are rows)."""
        rnd = self.rnd
        self.subselects -= 1
        table, alias = rnd.choice(self.tables), 's%d' % self.subselects
        outer = self.sources if rnd.random() < 0.7 else []
        columns = rnd.choice([table.key] * 2 + table.indexes)
        conditions = []
        for c in columns[:rnd.choice([len(columns)] * 3 + [1])]:
            found = [a + '.' + o.name for a, t in outer for o in t.columns
                     if (o.type == c.type or (o.type in INTS and c.type in INTS)) and o.collation == c.collation]
            conditions.append('%s.%s = %s' % (alias, c.name, rnd.choice(found) if found else self.param(c.type)))
        before, self.sources = self.sources, outer + [(alias, table)]
        if rnd.random() < 0.3:
            conditions.append(self.condition(1))
        text = ' FROM %s %s%s' % (table.name, alias, self.where(conditions))
        if not type_:
            what = ''
        elif type_ == 'int8' and rnd.random() < 0.3:
            what = 'count(*)'
        elif rnd.random() < 0.5 and type_ in BASIC and type_ not in ('bool', 'uuid', 'bytea'):
            what = '%s(%s)' % (rnd.choice(['min', 'max']), self.expression(type_, 1))
            if type_.startswith('numeric'):
                # of equal values (0, 0.0) either may be it
                what = 'trim_scale(%s)' % what
        else:
            what = self.expression(type_, 1)
            if rnd.random() < 0.6:
                text += ' ORDER BY ' + ', '.join(alias + '.' + c.name for c in table.key) + ' LIMIT 1'
        self.sources = before
        return 'SELECT ' + what + text

    def leaf(self, type_):
        if self.subselects > 0 and self.rnd.random() < 0.03:
            return '(%s)' % self.subselect(type_)
        r = self.rnd.random()
        column = self.column((type_,))
        if column and r < 0.6:
            return column
        return self.param(type_) if r < 0.85 else self.literal(type_)

    def expression(self, type_, depth=2):
        rnd = self.rnd
        if depth <= 0 or rnd.random() < 0.35:
            return self.leaf(type_)

        def sub(t=type_):
            return self.expression(t, depth - 1)
        general = [
            lambda: 'CASE WHEN %s THEN %s ELSE %s END' % (sub('bool'), sub(), sub()),
            lambda: 'COALESCE(%s, %s)' % (sub(), sub()),
        ]
        if type_ in BASIC:
            general += [lambda: 'NULLIF(%s, %s)' % (sub(), sub()),
                        lambda: '%s(%s, %s)' % (rnd.choice(['GREATEST', 'LEAST']), sub(), sub())]
        if type_ in NUMBERS:
            general += [lambda: '(%s %s %s)::%s' % (sub(), rnd.choice('+-*'), sub(), type_)] * 3
            general += [lambda: '(- %s)::%s' % (sub(), type_),
                        lambda: 'abs(%s)::%s' % (sub(), type_),
                        lambda: '(%s)::%s' % (sub(rnd.choice(NUMBERS)), type_)]
            if rnd.random() < 0.4:
                general += [lambda: '(%s / %s)::%s' % (sub(), sub(), type_)]
            if type_ in INTS:
                general += [lambda: '(%s %% 7::%s)' % (sub(), type_), lambda: 'length(%s)::%s' % (sub('text'), type_)]
        elif type_ in TEXTS:
            general += [lambda: '(%s || %s)::%s' % (sub(), sub('text'), type_),
                        lambda: '%s(%s)::%s' % (rnd.choice(['upper', 'lower', 'btrim']), sub(), type_),
                        lambda: 'substr(%s, 1, 3)::%s' % (sub(), type_),
                        lambda: '(%s)::text::%s' % (sub(rnd.choice(NUMBERS)), type_)]
        elif type_ == 'bool':
            return self.condition(depth)
        elif type_ == 'date':
            general += [lambda: '(%s + %s)' % (sub(), sub('int4')), lambda: '(%s)::date' % sub('timestamp')]
        elif type_ == 'timestamp':
            general += [lambda: "(%s + '1 day 2 hours'::interval)" % sub(), lambda: "date_trunc('hour', %s)" % sub(),
                        lambda: '(%s)::timestamp' % sub('timestamptz')]
        elif type_ == 'timestamptz':
            general += [lambda: "(%s - '1 month'::interval)" % sub(), lambda: '(%s)::timestamptz' % sub('date')]
        return rnd.choice(general)()

    def comparable(self):
        """Two expressions that can be compared, the first a column if there is one."""
        rnd = self.rnd
        type_ = rnd.choice(list(BASIC))
        column = self.column(tuple(BASIC))
        if column and rnd.random() < 0.8:
            alias, name = column.split('.')
            type_ = next(c.type for a, t in self.sources if a == alias for c in t.columns if c.name == name)
            other = type_
            if type_ in INTS and rnd.random() < 0.25:
                other = rnd.choice(INTS)
            elif type_ in ('date', 'timestamp', 'timestamptz') and rnd.random() < 0.2:
                other = rnd.choice(['date', 'timestamp', 'timestamptz'])
            return type_, column, self.expression(other, 1)
        return type_, self.expression(type_, 1), self.expression(type_, 1)

    def condition(self, depth=2):
        rnd = self.rnd
        r = rnd.random()
        if depth > 1 and r < 0.3:
            return '(%s %s %s)' % (self.condition(depth - 1), rnd.choice(['AND', 'OR']), self.condition(depth - 1))
        if depth > 1 and r < 0.36:
            return '(NOT %s)' % self.condition(depth - 1)
        if self.subselects > 0 and r < 0.4:
            return '(%sEXISTS (%s))' % (rnd.choice(['', 'NOT ']), self.subselect(''))
        type_, left, right = self.comparable()
        if self.subselects > 0 and r > 0.975:
            return '(%s %s (%s))' % (left, rnd.choice(['IN', 'NOT IN', '= ANY', '<> ALL', '>= ALL']), self.subselect(type_))
        if r < 0.5:
            return '(%s = %s)' % (left, right)
        if r < 0.7:
            return '(%s %s %s)' % (left, rnd.choice(['<', '<=', '>', '>=', '<>']), right)
        if r < 0.76:
            return '(%s BETWEEN %s AND %s)' % (left, right, self.expression(type_, 0))
        if r < 0.82:
            return '(%s IS %sNULL)' % (left, rnd.choice(['', 'NOT ']))
        if r < 0.86:
            return '(%s IS %sDISTINCT FROM %s)' % (left, rnd.choice(['', 'NOT ']), right)
        if r < 0.92:
            return '(%s IN (%s))' % (left, ', '.join(self.leaf(type_) for _ in range(rnd.randint(1, 4))))
        if r < 0.96 and '(' not in type_:
            return '(%s = ANY (%s))' % (left, self.param(type_ + '[]'))
        if r < 0.98:
            return "(%s LIKE %s)" % (self.expression('text', 0), quote(rnd.choice(['a%', '%b', '_', '%', 'ab\\%c'])))
        return '((%s) IS %s)' % (self.condition(1), rnd.choice(['TRUE', 'NOT TRUE', 'FALSE', 'UNKNOWN']))

    def by_key(self, alias, table, columns=None):
        """Equality with the key's first columns, perhaps a range of the next."""
        rnd = self.rnd
        columns = columns or rnd.choice([table.key] * 3 + table.indexes)
        n = rnd.choice([len(columns)] * 3 + [rnd.randint(0, len(columns))])
        conditions = []
        for c in columns[:n]:
            if rnd.random() < 0.1 and '(' not in c.type:
                conditions.append('%s.%s = ANY (%s)' % (alias, c.name, self.param(c.type + '[]')))
            else:
                conditions.append('%s.%s = %s' % (alias, c.name, self.param(c.type) if rnd.random() < 0.8 else self.literal(c.type)))
        if n < len(columns):
            c = columns[n]
            if rnd.random() < 0.6:
                conditions.append('%s.%s %s %s' % (alias, c.name, rnd.choice(['<', '<=', '>', '>=']), self.param(c.type)))
            if rnd.random() < 0.3:
                conditions.append('%s.%s %s %s' % (alias, c.name, rnd.choice(['<', '>=']), self.param(c.type)))
        if rnd.random() < 0.35:
            conditions.append(self.condition(2))
        return conditions

    def where(self, conditions):
        return ' WHERE ' + ' AND '.join(conditions) if conditions else ''

    def outputs(self):
        rnd = self.rnd
        if rnd.random() < 0.2:
            return ', '.join(a + '.*' for a, _ in self.sources)
        return ', '.join(self.expression(rnd.choice(list(VALUES)), 2) for _ in range(rnd.randint(1, 4)))

    # each returns the text, and whether rows come in an order that is the same everywhere

    def select(self):
        rnd = self.rnd
        table = rnd.choice(self.tables)
        self.sources = [('t', table)]
        text = 'SELECT %s FROM %s t%s' % (self.outputs(), table.name, self.where(self.by_key('t', table)))
        locks = ' FOR ' + rnd.choice(['UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE']) if rnd.random() < 0.2 else ''
        locks += rnd.choice(['', '', ' NOWAIT', ' SKIP LOCKED']) if locks else ''
        if rnd.random() < 0.35:
            direction = rnd.choice(['', ' DESC'])
            text += ' ORDER BY '
            if rnd.random() < 0.3:
                # an order that no index gives
                text += rnd.choice([c for c in table.columns if c.type in BASIC]).name.join(['t.', rnd.choice(
                    [', ', ' DESC, ', ' NULLS FIRST, '])])
            text += ', '.join('t.' + c.name + direction for c in table.key)
            if rnd.random() < 0.7:
                text += ' LIMIT ' + rnd.choice(['1', '3', '0', 'NULL', self.param('int8')])
            if rnd.random() < 0.3:
                text += ' OFFSET ' + rnd.choice(['1', self.param('int8')])
            return text + locks, True
        return text + locks, False

    def one_aggregate(self):
        rnd = self.rnd
        r = rnd.random()
        type_ = rnd.choice(NUMBERS)
        if r < 0.2:
            return 'count(*)'
        if r < 0.35:
            text = 'count(%s%s)' % (rnd.choice(['', 'DISTINCT ']), self.expression(rnd.choice(list(VALUES)), 1))
        elif r < 0.6:
            # the sum of floats depends on the order of rows, and so does which of
            # several equal numbers of different scales is the one that counts
            name, distinct = rnd.choice(['sum', 'avg']), rnd.choice(['', '', 'DISTINCT '])
            type_ = rnd.choice(INTS + ('numeric',))
            value = self.expression(type_, 1)
            if distinct and type_ == 'numeric':
                value = 'trim_scale(%s)' % value
            text = '%s(%s%s)' % (name, distinct, value)
        elif r < 0.9:
            type_ = rnd.choice([t for t in BASIC if t not in ('bool', 'uuid', 'bytea', 'float8', 'float4', 'numeric')])
            text = '%s(%s)' % (rnd.choice(['min', 'max']), self.expression(type_, 1))
        else:
            text = '%s(%s)' % (rnd.choice(['bool_and', 'bool_or']), self.condition(1))
        if rnd.random() < 0.15:
            text += ' FILTER (WHERE %s)' % self.condition(1)
        return text

    def aggregate(self):
        rnd = self.rnd
        table = rnd.choice(self.tables)
        self.sources = [('t', table)]

        text = 'SELECT %s FROM %s t%s' % (', '.join(self.one_aggregate() for _ in range(rnd.randint(1, 4))), table.name,
                                          self.where(self.by_key('t', table)))
        if rnd.random() < 0.1:
            text += ' HAVING count(*) > %s' % self.param('int8')
        return text, True

    def report(self):
        rnd = self.rnd
        first = rnd.choice(self.tables)
        self.sources, order, conditions = [('t', first)], 't.c0', []
        text = ' FROM %s t' % first.name
        for alias in ['u', 'v'][:rnd.choice([0, 0, 1, 1, 2])]:
            other = rnd.choice(self.tables)
            pairs = [(a + '.' + c.name, o.name) for a, t in self.sources for c in t.columns for o in other.columns
                     if (c.type == o.type or (c.type in INTS and o.type in INTS)) and c.collation == o.collation]
            # by the first column, or there would be too many rows
            a, b = rnd.choice([p for p in pairs if p[1] == 'c0'])
            on = '%s = %s.%s' % (a, alias, b)
            if rnd.random() < 0.3:
                on += ' AND %s = %s.%s' % (lambda p: (p[0], alias, p[1]))(rnd.choice(pairs))
            if rnd.random() < 0.25:
                conditions.append('%sEXISTS (SELECT FROM %s %s WHERE %s)' % (rnd.choice(['', 'NOT ']), other.name, alias, on))
                continue
            text += ' %sJOIN %s %s ON %s' % (rnd.choice(['', '', 'LEFT ', 'RIGHT ', 'FULL ']), other.name, alias, on)
            self.sources.append((alias, other))
            order += ', %s.c0' % alias
        if rnd.random() < 0.4:
            conditions.append(self.condition(1))
        text += self.where(conditions)
        columns = ['%s.%s' % (a, c.name) for a, t in self.sources for c in t.columns if c.type != 'jsonb']
        keys = rnd.sample(columns, min(len(columns), rnd.choice([0, 1, 1, 1, 2, 2, 3])))
        if rnd.random() < 0.15:
            keys.append(self.expression(rnd.choice(list(BASIC)), 1))
        if keys and rnd.random() < 0.25:
            return 'SELECT DISTINCT ' + ', '.join(keys) + text
        if rnd.random() < 0.08:
            return 'SELECT ' + self.outputs() + text
        outputs = [str(i + 1) for i in range(len(keys))]
        keys += [self.one_aggregate() for _ in range(rnd.randint(0 if keys else 1, 4))]
        if rnd.random() < 0.1:
            keys.append('string_agg(%s::text, \',\' ORDER BY %s)' % (rnd.choice([c for c in columns if c.endswith('.c0')]), order))
        text = 'SELECT ' + ', '.join(keys) + text
        if outputs:
            text += ' GROUP BY ' + ', '.join(outputs)
        if rnd.random() < 0.15:
            text += ' HAVING %s > %d' % (rnd.choice(['count(*)', 'sum(t.c0)']), rnd.randint(0, 20))
        return text

    def change(self):
        """One that depends on no order of rows."""
        rnd = self.rnd
        table = rnd.choice(self.tables)
        where = ' WHERE c0 %% %d = %d' % (rnd.randint(2, 30), rnd.randint(0, 3))
        if rnd.random() < 0.2:
            return 'DELETE FROM ' + table.name + where
        c = rnd.choice(table.columns[1:])
        if rnd.random() < 0.4:
            return 'INSERT INTO %s SELECT (SELECT max(c0) FROM %s) + c0, %s FROM %s%s AND c0 < 100' % (
                table.name, table.name, ', '.join(c.name for c in table.columns[1:]), table.name, where)
        return 'UPDATE %s SET %s = %s%s' % (table.name, c.name, quote(rnd.choice(VALUES[c.type])), where)

    def join(self):
        rnd = self.rnd
        first, second = rnd.choice(self.tables), rnd.choice(self.tables)
        self.sources = [('t', first)]
        conditions = self.by_key('t', first)
        pairs = [(a, b) for a in first.columns for b in second.columns
                 if b in second.key + [c for i in second.indexes for c in i] and
                 (a.type == b.type or (a.type in INTS and b.type in INTS)) and a.collation == b.collation]
        if not pairs:
            return None, False
        on = ' AND '.join('t.%s = u.%s' % (a.name, b.name) for a, b in rnd.sample(pairs, min(len(pairs), rnd.choice([1, 1, 2]))))
        kind = rnd.choice(['JOIN', 'JOIN', 'LEFT JOIN', 'EXISTS', 'NOT EXISTS'])
        if 'EXISTS' in kind:
            self.sources.append(('u', second))
            if rnd.random() < 0.3:
                on += ' AND ' + self.condition(1)
            self.sources.pop()
            conditions.append('%s (SELECT FROM %s u WHERE %s)' % (kind, second.name, on))
            return 'SELECT %s FROM %s t%s' % (self.outputs(), first.name, self.where(conditions)), False
        self.sources.append(('u', second))
        if rnd.random() < 0.3:
            on += ' AND ' + self.condition(1)
        if rnd.random() < 0.2:
            conditions.append(self.condition(1))
        what, locks = 'count(*)', ''
        if rnd.random() < 0.8:
            what = self.outputs()
            if rnd.random() < 0.3:
                locks = ' FOR %s%s' % (rnd.choice(['UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE']),
                                       ' OF t' if kind == 'LEFT JOIN' else rnd.choice(['', ' OF t', ' OF u']))
        return 'SELECT %s FROM %s t %s %s u ON %s%s%s' % (what, first.name, kind, second.name, on,
                                                          self.where(conditions), locks), False

    def other(self, table):
        """Another table to change rows by, with one row at most for each of them."""
        rnd = self.rnd
        if rnd.random() > 0.3:
            return '', []
        other = rnd.choice(self.tables)
        conditions = []
        for c in other.key:
            found = [table.name + '.' + o.name for o in table.columns
                     if (o.type == c.type or (o.type in INTS and c.type in INTS)) and o.collation == c.collation]
            conditions.append('u.%s = %s' % (c.name, rnd.choice(found) if found else self.param(c.type)))
        self.sources.append(('u', other))
        return other.name + ' u', conditions

    def returning(self, table):
        if self.rnd.random() < 0.4:
            self.sources = [(table.name, table)] + [s for s in self.sources if s[0] == 'u']
            return ' RETURNING ' + (self.outputs() if self.rnd.random() < 0.7 else '*')
        return ''

    def insert(self):
        rnd = self.rnd
        table = rnd.choice(self.tables)
        self.sources = []
        columns = [c for c in table.columns if c in table.key or rnd.random() < 0.85]
        text = 'INSERT INTO %s (%s) ' % (table.name, ', '.join(c.name for c in columns))
        if rnd.random() < 0.3:
            # in an order, for rows may be in conflict with each other
            source = rnd.choice(self.tables)
            self.sources = [('t', source)]
            values = ', '.join(self.expression(c.type, 1) for c in columns)
            text += 'SELECT %s FROM %s t%s ORDER BY %s' % (
                values, source.name, self.where(self.by_key('t', source)), ', '.join('t.' + c.name for c in source.key))
            if rnd.random() < 0.3:
                text += ' LIMIT 2'
            self.sources = []
        else:
            rows = []
            for _ in range(rnd.choice([1, 1, 1, 2, 4])):
                rows.append('(%s)' % ', '.join(self.param(c.type) if c in table.key or rnd.random() < 0.6
                                               else self.expression(c.type, 2) for c in columns))
            text += 'VALUES ' + ', '.join(rows)
        if rnd.random() < 0.35:
            text += ' ON CONFLICT'
            if rnd.random() < 0.8:
                text += ' (%s)' % ', '.join(c.name for c in table.key)
            if rnd.random() < 0.4 or text.endswith('CONFLICT'):
                text += ' DO NOTHING'
            else:
                self.sources = [(table.name, table), ('excluded', table)]
                assigned = rnd.sample(table.columns, rnd.randint(1, 2))
                text += ' DO UPDATE SET ' + ', '.join('%s = %s' % (c.name, self.expression(c.type, 2)) for c in assigned)
                if rnd.random() < 0.3:
                    text += ' WHERE ' + self.condition(1)
        return text + self.returning(table), False

    def update(self):
        rnd = self.rnd
        table = rnd.choice(self.tables)
        self.sources = [(table.name, table)]
        other, on = self.other(table)
        conditions = self.by_key(table.name, table) + on
        assigned = [c for c in table.columns if rnd.random() < (0.08 if c in table.key else 0.4)] or [table.columns[-1]]
        text = 'UPDATE %s SET %s%s%s' % (
            table.name, ', '.join('%s = %s' % (c.name, self.expression(c.type, 2)) for c in assigned),
            ' FROM ' + other if other else '', self.where(conditions))
        return text + self.returning(table), False

    def delete(self):
        table = self.rnd.choice(self.tables)
        self.sources = [(table.name, table)]
        other, on = self.other(table)
        text = 'DELETE FROM %s%s%s' % (table.name, ' USING ' + other if other else '',
                                       self.where(self.by_key(table.name, table, table.key) + on))
        return text + self.returning(table), False

    def make(self):
        kind = self.rnd.choices([self.select, self.aggregate, self.join, self.insert, self.update, self.delete],
                                [8, 4, 4, 6, 5, 1])[0]
        text, ordered = kind()
        return text, ordered, kind in (self.insert, self.update, self.delete)

    def arguments(self):
        """Values of the parameters: as literals, and as a client sends them (None: null)."""
        rnd = self.rnd
        literals, sent = [], []
        for type_ in self.params:
            if rnd.random() < 0.06:
                literals.append('NULL')
                sent.append(None)
            elif type_.endswith('[]') and type_[:-2] in VALUES:
                items = [rnd.choice(VALUES[type_[:-2]] + ['NULL']) for _ in range(rnd.randint(0, 4))]
                literals.append('ARRAY[%s]::%s' % (', '.join('NULL' if i == 'NULL' else quote(i) for i in items), type_))
                sent.append('{%s}' % ','.join(i if i == 'NULL' else '"%s"' % re.sub(r'(["\\])', r'\\\1', i) for i in items))
            else:
                if type_ == 'int8' and rnd.random() < 0.5:
                    value = str(rnd.randint(-1, 12))
                    literals.append(value)
                elif type_ in INTS and rnd.random() < 0.4:
                    value = str(rnd.randint(-3, 40))
                    literals.append('(%s)' % value)
                else:
                    value = rnd.choice(VALUES[type_])
                    literals.append(quote(value))
                sent.append(value)
        return literals, sent


class Sender:
    """Unnamed statements, by the same connection's libpq."""

    def __init__(self, connection):
        self.pq = ctypes.CDLL('libpq.so.5')
        for name in 'PQexecParams', 'PQgetResult':
            getattr(self.pq, name).restype = ctypes.c_void_p
        for name in 'PQresultErrorField', 'PQcmdTuples', 'PQgetvalue', 'PQfname':
            getattr(self.pq, name).restype = ctypes.c_char_p
        self.conn = ctypes.c_void_p(connection.pgconn_ptr)

    def run(self, text, types, values, ordered):
        n = len(values)
        params = (ctypes.c_char_p * n)(*[v if v is None else v.encode() for v in values])
        r = ctypes.c_void_p(self.pq.PQexecParams(self.conn, text.encode(), n, (ctypes.c_uint * n)(*types), params, None, None, 0))
        status = self.pq.PQresultStatus(r)
        if status in (1, 2):
            rows, columns = None, []
            if status == 2:
                rows = [tuple(None if self.pq.PQgetisnull(r, i, j) else self.pq.PQgetvalue(r, i, j).decode()
                              for j in range(self.pq.PQnfields(r))) for i in range(self.pq.PQntuples(r))]
                if not ordered:
                    rows.sort(key=repr)
                columns = [(self.pq.PQfname(r, i), self.pq.PQftype(r, i), self.pq.PQfmod(r, i), self.pq.PQftablecol(r, i))
                           for i in range(self.pq.PQnfields(r))]
            result = ('ok', int(self.pq.PQcmdTuples(r) or -1), rows, columns)
        else:
            fields = [self.pq.PQresultErrorField(r, ord(c)) for c in 'CMD']
            if fields[0] is None or fields[0][:2] in (b'57', b'58', b'XX'):
                print('not a statement\'s own error: %s' % fields)
                sys.exit(2)
            result = ('error',) + tuple(f and f.decode() for f in fields)
        self.pq.PQclear(r)
        return result


class Twin:
    def __init__(self, name, door, settings, options):
        self.name, self.door = name, door
        self.connection = psycopg2.connect('dbname=' + (psycopg2.extensions.parse_dsn('').get('dbname') or 'postgres'))
        self.connection.autocommit = True
        # values as the server writes them
        oids = (16, 17, 18, 20, 21, 23, 25, 114, 700, 701, 1000, 1005, 1007, 1009, 1016, 1021, 1022, 1042, 1043, 1082,
                1083, 1114, 1115, 1184, 1185, 1186, 1231, 1266, 1700, 2950, 2951, 3802)
        as_text = psycopg2.extensions.new_type(oids, 'AS_TEXT', lambda value, cursor: value)
        psycopg2.extensions.register_type(as_text, self.connection)
        self.sender = Sender(self.connection)
        self.oids = {}
        self.run('DROP SCHEMA IF EXISTS %s CASCADE' % name)
        self.run('CREATE SCHEMA %s' % name)
        self.run('SET search_path = %s, public' % name)
        self.run("SET timezone = 'Europe/Berlin'; SET client_min_messages = error; SET jit = off")
        if options.protocol == 'prepared':
            self.run('SET plan_cache_mode = force_generic_plan')
        if options.reports:
            self.run('SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;'
                     "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        else:
            self.run('SET enable_hashjoin = off; SET enable_mergejoin = off')
        for setting in settings:
            self.run('SET ' + setting)

    def run(self, text, ordered=False):
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(text)
                rows = None
                if cursor.description is not None:
                    rows = cursor.fetchall()
                    if not ordered:
                        rows = sorted(rows, key=repr)
                columns = [(c.name, c.type_code, c.internal_size, c.precision, c.scale, c.table_column)
                           for c in cursor.description or ()]
                return ('ok', cursor.rowcount, rows, columns)
            except psycopg2.Error as error:
                if error.pgcode is None or error.pgcode.startswith(('57', '58', 'XX')):
                    print('not a statement\'s own error: %s' % error)
                    sys.exit(2)
                return ('error', error.pgcode, error.diag.message_primary, error.diag.message_detail)


    def send(self, text, types, values, ordered):
        for type_ in types:
            if type_ not in self.oids:
                self.oids[type_] = int(self.run("SELECT '%s'::regtype::oid" % type_)[2][0][0])
        return self.sender.run(text, [self.oids[t] for t in types], values, ordered)


def canonical(result):
    """An answer in which equal values look the same."""
    def value(v):
        if v is None or not re.fullmatch(r'-?\d+(\.\d+)?([eE][-+]?\d+)?', v):
            return v and v.casefold()
        with decimal.localcontext() as context:
            context.prec = 1000
            return str(decimal.Decimal(v).normalize() + 0)
    if result[0] != 'ok' or result[2] is None:
        return result
    return ('ok', result[1], sorted([tuple(value(v) for v in row) for row in result[2]], key=repr))


class Run:
    def __init__(self, options):
        self.options = options
        self.rnd = random.Random(options.seed)
        on = ['mot.jit = on', 'mot.jit_prepare_above_executions = 0'] + options.settings.split()
        off = ['mot.jit = off'] + ['mot.batches = off'] * options.reports
        self.twins = [Twin(name, door, settings, options) for name, door, settings in (
            ('diff_heap', 'USING heap', []),
            ('diff_off', 'SERVER mot_server', off), ('diff_on', 'SERVER mot_server', on),
            ('diff_table_off', 'USING mot', off), ('diff_table_on', 'USING mot', on))]
        self.tiers = collections.Counter()
        self.executed = self.failed = self.tolerated = self.differences = 0

    def all(self, text, ordered=False):
        return [twin.run(text, ordered) for twin in self.twins]

    def judge(self, text, arguments, results, same_order=True):
        if self.options.reports:
            exact, results = results, [canonical(r) for r in results]
            if same_order and all(r[0] == 'ok' for r in results) and (exact[1] != exact[2] or exact[3] != exact[4]):
                results = exact
        # which of several rows is met first, and how it fails, is anybody's guess
        if not (text.startswith('INSERT') and 'VALUES' in text) and all(r[0] == 'error' for r in results):
            self.failed += 1
            self.tolerated += len(set(results)) > 1
            return True
        heap = results[0]
        if any(off != on or (heap != off and heap[0] == off[0] == 'ok')
               for off, on in (results[1:3], results[3:5])):
            self.differences += 1
            print('DIFFERENCE (seed %d)\n  %s\n  (%s)' % (self.options.seed, text, arguments))
            for twin, result in zip(self.twins, results):
                print('  %-10s %s' % (twin.name, str(result)[:2000]))
            return False
        if any(heap != off for off in results[1:]):
            self.tolerated += 1
            return False
        if heap[0] == 'error':
            self.failed += 1
        return True

    def make_tables(self):
        rnd = self.rnd
        reports = self.options.reports
        tables = [(ReportTable if reports else Table)(rnd, 't%d' % i) for i in range(3)]
        for table in tables:
            for twin in self.twins:
                twin.run('DROP %sTABLE IF EXISTS %s' % ('FOREIGN ' if twin.door.startswith('SERVER') else '', table.name))
                for statement in table.definitions(twin.door):
                    result = twin.run(statement)
                    if result[0] != 'ok':
                        print('%s\n  %s' % (statement, result))
                        sys.exit(2)
            if reports:
                text = 'INSERT INTO %s VALUES %s' % (table.name, ', '.join(table.rows(1, rnd.randint(150, 600))))
                self.judge(text, '', self.all(text))
                self.all('ANALYZE ' + table.name)
            for _ in range(0 if reports else 60):
                values = []
                for c in table.columns:
                    if c.type in INTS and rnd.random() < 0.7:
                        values.append(str(rnd.randint(0, 40)))
                    else:
                        values.append('NULL' if not c.notnull and rnd.random() < 0.2 else quote(rnd.choice(VALUES[c.type])))
                text = 'INSERT INTO %s VALUES (%s)' % (table.name, ', '.join(values))
                self.judge(text, '', self.all(text))
        return tables

    def compare(self, tables):
        for table in tables:
            text = 'SELECT * FROM ' + table.name
            self.judge(text, '', self.all(text))

    def one_statement(self, tables):
        rnd = self.rnd
        maker = Maker(rnd, tables)
        text, ordered, changes = maker.make()
        if text is None:
            return
        prepared = 'PREPARE p(%s) AS %s' % (', '.join(maker.params), text) if maker.params else 'PREPARE p AS ' + text
        if self.options.verbose:
            print(prepared, flush=True)
        if self.options.protocol != 'prepared':
            return self.unprepared(tables, maker, text, ordered, changes)
        results = self.all(prepared)
        if results[0][0] == 'error':
            if not all(r[0] == 'error' for r in results):
                self.judge(prepared, '', results)
            self.all('DEALLOCATE ALL')
            return
        # what a savepoint took back that was read meanwhile can make a SERIALIZABLE transaction fail
        level = rnd.choice(['READ COMMITTED'] * 8 + ['REPEATABLE READ', 'SERIALIZABLE'])
        savepoints = changes and level != 'SERIALIZABLE'
        if changes:
            self.all('BEGIN ISOLATION LEVEL ' + level)
        for _ in range(rnd.choice([1, 3, 5, 5])):
            arguments = ', '.join(maker.arguments()[0])
            if savepoints:
                self.all('SAVEPOINT s')
            results = self.all('EXECUTE p' + ('(%s)' % arguments if arguments else ''), ordered)
            self.executed += 1
            same = self.judge(text, arguments, results)
            if changes and (not same or results[0][0] == 'error'):
                if not savepoints:
                    break
                self.all('ROLLBACK TO s')
        else:
            same = True
        self.count_tier()
        if changes:
            end = 'COMMIT' if rnd.random() < 0.8 and (savepoints or same) else 'ROLLBACK'
            self.judge(end + ' after ' + text, '', self.all(end))
            if rnd.random() < 0.1:
                self.compare(tables)
        self.all('DEALLOCATE ALL')

    def unprepared(self, tables, maker, text, ordered, changes):
        """The same statement a few times, with other values; nobody has prepared it."""
        rnd = self.rnd
        before = [self.unplanned(twin) for twin in self.twins[2::2]]
        if changes:
            self.all('BEGIN ISOLATION LEVEL ' + rnd.choice(['READ COMMITTED'] * 8 + ['REPEATABLE READ']))
        for _ in range(rnd.choice([1, 3, 5, 7])):
            literals, values = maker.arguments()
            if changes:
                self.all('SAVEPOINT s')
            if self.options.protocol == 'simple':
                sent = re.sub(r'\$(\d+)', lambda m: '%s::%s' % (literals[int(m[1]) - 1], maker.params[int(m[1]) - 1]), text)
                results = self.all(sent, ordered)
            else:
                sent = text
                results = [twin.send(text, maker.params, values, ordered) for twin in self.twins]
            self.executed += 1
            same = self.judge(sent, '' if sent is not text else str(values), results)
            if changes and (not same or results[0][0] == 'error'):
                self.all('ROLLBACK TO s')
        for twin, was in zip(self.twins[2::2], before):
            self.tiers['%s unplanned' % twin.door] += max(0, self.unplanned(twin) - was)
        if changes:
            end = 'COMMIT' if rnd.random() < 0.8 else 'ROLLBACK'
            self.judge(end + ' after ' + text, '', self.all(end))
            if rnd.random() < 0.1:
                self.compare(tables)

    def unplanned(self, twin):
        result = twin.run('SELECT COALESCE(sum(unplanned), 0)::bigint FROM mot_stat_jit')
        return int(result[2][0][0]) if result[0] == 'ok' else 0

    def some_reports(self, tables):
        rnd = self.rnd
        workers = rnd.choice([0, 0, 2])
        self.all('SET max_parallel_workers_per_gather = %d' % workers)
        self.all('SET work_mem = %s' % rnd.choice(['64', '4096', '4096', '4096']))
        for name in 'sort', 'nestloop', 'mergejoin':
            self.all('SET enable_%s = %s' % (name, rnd.choice(['on', 'off'])))
        for twin in self.twins[2::2]:
            twin.run('SET mot.jit_above_scanned = %s' % rnd.choice(['0', '0', '-1']))
        self.all('BEGIN ISOLATION LEVEL ' + rnd.choice(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE']))
        for _ in range(rnd.choice([0, 0, 1, 2, 4])):
            text = Maker(rnd, tables, True).change()
            # (a savepoint: it may fail; one that is taken back is none)
            self.all('SAVEPOINT s')
            results = self.all(text)
            if not self.judge(text, '', results) or results[0][0] == 'error' or rnd.random() < 0.2:
                self.all('ROLLBACK TO s')
        # (rows take places that others have left when these have been reclaimed)
        orders = [self.all('SELECT c0 FROM ' + table.name, True) for table in tables] if workers == 0 else []
        same_order = workers == 0 and all(o[1] == o[2] and o[3] == o[4] for o in orders)
        self.tiers['in the same order' if same_order else 'in any order'] += 1
        for _ in range(rnd.randint(1, 8)):
            text = Maker(rnd, tables, True).report()
            if self.options.verbose:
                print(text, flush=True)
            self.all('SAVEPOINT s')
            results = self.all(text)
            self.executed += 1
            self.judge(text, 'workers: %d' % workers, results, same_order)
            if any(r[0] == 'error' for r in results):
                self.all('ROLLBACK TO s')
            if results[4][0] == 'ok' and rnd.random() < 0.2:
                lines = self.twins[4].run('EXPLAIN (VERBOSE) ' + text)[2]
                for line in ' '.join(r[0] for r in lines).partition('MOT Batches: ')[2].split(', '):
                    self.tiers[re.sub(r' on t\d', '', line)] += 1
        self.judge('', '', self.all(rnd.choice(['COMMIT', 'ROLLBACK'])))

    def count_tier(self):
        for twin in self.twins[2::2]:
            result = twin.run("SELECT tier, COALESCE(why_not, why_not_compiled, '') FROM mot_stat_jit"
                              " WHERE query ^@ 'PREPARE p'")
            for tier, why_not in result[2] if result[0] == 'ok' else []:
                # (of names and places there are many)
                self.tiers['%s tier %s %s' % (twin.door, tier, why_not)] += 1

    def everything(self):
        print('# seed %d' % self.options.seed, flush=True)
        while self.executed < self.options.statements and self.differences < 10:
            tables = self.make_tables()
            until = min(self.executed + (150 if self.options.reports else 1500), self.options.statements)
            while self.executed < until and self.differences < 10:
                (self.some_reports if self.options.reports else self.one_statement)(tables)
            self.compare(tables)
        for twin in self.twins:
            twin.run('DROP SCHEMA %s CASCADE' % twin.name)
        print('# %d executions, %d of them errors, %d tolerated, %d differences' %
              (self.executed, self.failed, self.tolerated, self.differences))
        for line, count in self.tiers.most_common(30):
            print('# %6d %s' % (count, line))
        return 1 if self.differences else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randint(1, 10 ** 9))
    parser.add_argument('--statements', type=int, default=3000)
    parser.add_argument('--settings', default='')
    parser.add_argument('--reports', action='store_true')
    parser.add_argument('--protocol', choices=['prepared', 'simple', 'unnamed'], default='prepared')
    parser.add_argument('--verbose', action='store_true')
    sys.exit(Run(parser.parse_args()).everything())


if __name__ == '__main__':
    main()
