#!/usr/bin/python3
"""procedures.py: the same random functions in PL/pgSQL, interpreted and as machine code.

    procedures.py [options]       (the connection is libpq's: PGHOST, ...)

Makes random functions of all statements, and calls each with several sets of arguments in two sessions, which
work at the same time: in one the interpreter has them all (mot.jit_procedures = off), in the other they are compiled, at their first
call, when nothing has a plan yet, or later. What they return, what they say (RAISE NOTICE), and how they fail,
with SQLSTATE, DETAIL, HINT and CONTEXT, must be equal; so must be, at the end, a table that they have changed.
It is a heap table in some runs, and a memory-optimized one in others: not both, for these have other plans, and an
expression that fails may be evaluated in one of them only.
Plans go, and operators become others, also while a function runs; and between calls settings, the search path (to operators of other types), roles and privileges, tables, types and
functions change; some calls are made in one transaction, with savepoints.

    --seed N         to repeat a run (printed at its beginning), or the rest of it from a round on (printed with a difference)
    --functions N    how many (default 300), in rounds of 500, each with tables, sessions and a seed of its own, the next one
    --tables heap|mot    what the table is (default: either, each round)
    --memory         print what the sessions have used at the end of each round: by contexts, and resident
    --verbose        print every function
"""

import argparse
import collections
import os
import random
import re
import socket
import struct
import sys

VALUES = {
    'bool': ['true', 'false'],
    'int2': ['1::int2', '7::int2', '-1::int2', '0::int2', '32767::int2', '-32768::int2'],
    'int4': ['1', '2', '-1', '0', '3', '7', '100', '2147483647', '(-2147483648)'],
    'int8': ['1::int8', '5::int8', '-1::int8', '0::int8', '9223372036854775807', '(-9223372036854775808)', '2147483648'],
    'float4': ["'2'::float4", "'-4'::float4", "'1.5'::float4", "'0'::float4", "'-0'::float4", "'NaN'::float4", "'Infinity'::float4", "'1e38'::float4",
               "'1e-38'::float4"],
    'float8': ["'1'::float8", "'-3'::float8", "'2.5'::float8", "'0'::float8", "'-0'::float8", "'NaN'::float8", "'-Infinity'::float8", "'1e308'::float8",
               "'1e-300'::float8"],
    'numeric': ['1.50', '3.0', '-2.25', '0.0', "'NaN'::numeric", '99999.999', '123456789012345678901234567890.5'],
    'text': ["''::text", "'a'::text", "'B'::text", "'abc'::text", "'12'::text", "repeat('x', 300)", "'ä'::text"],
    'bytea': ["'\\x'::bytea", "'\\x00ff'::bytea", "'\\x616263'::bytea"],
    'date': ["'2000-01-01'::date", "'2024-02-29'::date", "'infinity'::date"],
    'timestamp': ["'2000-01-01 00:00:00'::timestamp", "'2026-10-25 02:30:00.5'::timestamp", "'-infinity'::timestamp"],
    'timestamptz': ["'2000-01-01 00:00:00+00'::timestamptz", "'2026-10-25 00:30:00+00'::timestamptz"],
    'oid': ['0::oid', '1::oid', '4294967295::oid'],
    'interval': ["'1 day'::interval", "'02:03:04.5'::interval", "'-1 month'::interval", "'24:00'::interval"],
    'time': ["'12:34:56'::time", "'00:00'::time", "'23:59:59.999'::time"],
    'timetz': ["'12:34:56+02'::timetz", "'10:34:56+00'::timetz"],
    'uuid': ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "'00000000-0000-0000-0000-000000000000'::uuid"],
    'name': ["'abc'::name", "''::name", "repeat('n', 63)::name"],
    'bpchar': ["'ab '::char(3)", "''::char(2)", "'B'::bpchar"],
    '"char"': ["'a'::\"char\"", "''::\"char\""],
    'varbit': ["B'101'", "B''", "B'1111111110'::varbit"],
    'jsonb': ["'{\"a\": 1}'::jsonb", "'[1, 2]'::jsonb", "'null'::jsonb"],
    'inet': ["'10.0.0.1'::inet", "'::1'::inet"],
}
TYPES = list(VALUES)
INTS = ['int2', 'int4', 'int8']
NUMBERS = INTS + ['float4', 'float8', 'numeric']
# how a variable is declared: (declaration, type of its value)
ODD = [('char(2)', 'bpchar'), ('bit(3)', 'varbit'), ('interval hour to minute', 'interval'), ('time(0)', 'time'), ('text COLLATE "C"', 'text'),
       ('tiny_number', 'int4'), ('numeric(5,0)', 'numeric'), ('varchar(5)', 'text'), ('numeric(6,2)', 'numeric'), ('small_number', 'int4'), ('wide_word', 'text'),
       ('timestamp(0)', 'timestamp'), ('int4[]', None), ('text[]', None), ('numeric[]', None), ('pair', None), ('record', None)]
ARRAYS = {'int4[]': 'int4', 'text[]': 'text', 'numeric[]': 'numeric'}
ARGS = [('a', 'int4'), ('b', 'int8'), ('c', 'text'), ('d', 'float8'), ('e', 'bool'), ('f', 'numeric')]

SETUP = r"""
DROP SCHEMA IF EXISTS procedures, shadow CASCADE;
CREATE SCHEMA procedures;
SET search_path = procedures, public;
CREATE DOMAIN small_number AS int4 CHECK (VALUE IS NULL OR VALUE < 1000);
CREATE DOMAIN wide_word AS text NOT NULL DEFAULT 'w' CHECK (length(VALUE) < 50);
CREATE TYPE pair AS (x int4, y text);
CREATE DOMAIN tiny_number AS small_number CHECK (VALUE > -50);
CREATE FUNCTION bump() RETURNS int4 LANGUAGE plpgsql AS $$ DECLARE n int4 := current_setting('procedures.n')\; BEGIN IF nextval('calls') > 100 THEN RETURN 100\; END IF\; n := n + 1\; PERFORM set_config('procedures.n', n::text, false)\; RETURN n\; END $$;
CREATE FUNCTION failing(i int4) RETURNS int4 LANGUAGE plpgsql AS $$ BEGIN IF i > 2 THEN RETURN i / (i - i)\; END IF\; RETURN i\; END $$;
CREATE FUNCTION changing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 7 THEN RETURN NULL\; END IF\; NEW.v := NEW.v + failing(NEW.id % 4)\; RETURN NEW\; END $$;
CREATE SCHEMA shadow;
CREATE FUNCTION shadow.half(int4, int4) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT $1 OPERATOR(pg_catalog./) 2.0 $$;
CREATE FUNCTION shadow.other_way(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $2 OPERATOR(pg_catalog.||) $1 $$;
CREATE FUNCTION shadow.less(int8, int8) RETURNS bool LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN $1 OPERATOR(pg_catalog.>) $2\; END $$;
CREATE FUNCTION shadow.abs(int4) RETURNS int8 LANGUAGE sql IMMUTABLE AS $$ SELECT $1::int8 OPERATOR(pg_catalog.+) 1::int8 $$;
CREATE OPERATOR shadow.+ (LEFTARG = int4, RIGHTARG = int4, FUNCTION = shadow.half);
CREATE OPERATOR shadow.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = shadow.other_way);
CREATE OPERATOR shadow.< (LEFTARG = int8, RIGHTARG = int8, FUNCTION = shadow.less);
CREATE FUNCTION plus_one(i int4) RETURNS int4 LANGUAGE plpgsql AS $$ BEGIN RETURN i + 1; END $$;
CREATE FUNCTION stable_twice(i int8) RETURNS int8 LANGUAGE sql STABLE AS $$ SELECT i * 2 $$;
CREATE FUNCTION caught(call text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE r text\; m text\; d text\; h text\; c text\; BEGIN EXECUTE 'SELECT ' || call INTO r\; RETURN r\; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT, c = PG_EXCEPTION_CONTEXT\; RETURN concat_ws(' | ', SQLSTATE, m, d, h, c)\; END $$;
"""

# what may change between two calls: in both sessions, ...
EVENTS = ['DISCARD PLANS', "SET plpgsql.extra_errors = 'too_many_rows'", "SET plpgsql.extra_errors = 'all'", "SET plpgsql.extra_warnings = 'all'",
          'SET plpgsql.check_asserts = off', 'SET search_path = shadow, pg_catalog, {schema}, procedures, public',
          'SET search_path = {schema}, procedures, public', "SET DateStyle = 'german'", 'SET extra_float_digits = -4', "SET IntervalStyle = 'iso_8601'",
          "SET TimeZone = 'Asia/Tokyo'", "SET plan_cache_mode = 'force_custom_plan'", "SET plan_cache_mode = 'force_generic_plan'",
          'CREATE INDEX IF NOT EXISTS changed_v ON {schema}.changed (v)', 'DROP INDEX IF EXISTS {schema}.changed_v',
          "ALTER TABLE {schema}.changed ADD COLUMN IF NOT EXISTS w text DEFAULT 'w'", 'ALTER TABLE {schema}.changed DROP COLUMN IF EXISTS w',
          'ALTER TABLE {schema}.changed ALTER v TYPE int8', 'ALTER TABLE {schema}.changed ALTER v TYPE int4', 'ANALYZE {schema}.changed',
          'CREATE OR REPLACE TRIGGER changing BEFORE UPDATE OR INSERT ON {schema}.changed FOR EACH ROW EXECUTE FUNCTION procedures.changing()',
          'DISCARD PLANS', 'SET ROLE procedures_user', 'SET ROLE procedures_user', 'GRANT ALL ON {schema}.changed TO procedures_user',
          'REVOKE UPDATE ON {schema}.changed FROM procedures_user', 'RESET ROLE']
# ... for both, ...
COMMON_EVENTS = ['ALTER DOMAIN small_number DROP CONSTRAINT IF EXISTS extra', 'ALTER DOMAIN small_number ADD CONSTRAINT extra CHECK (VALUE <> 7)',
                 'ALTER TYPE pair ADD ATTRIBUTE z int4', 'ALTER TYPE pair DROP ATTRIBUTE IF EXISTS z',
                 'REVOKE EXECUTE ON FUNCTION pg_catalog.abs(int4) FROM PUBLIC', 'GRANT EXECUTE ON FUNCTION pg_catalog.abs(int4) TO PUBLIC',
                 'REVOKE EXECUTE ON FUNCTION pg_catalog.int4pl(int4, int4) FROM PUBLIC', 'ALTER FUNCTION stable_twice(int8) VOLATILE',
                 'DROP FUNCTION plus_one(int4)', 'CREATE OR REPLACE FUNCTION plus_one(i int4) RETURNS int8 LANGUAGE sql AS $$ SELECT i::int8 $$']
# ... and how all is as before, after what has such words in it
AS_BEFORE = {'ROLE': 'RESET ROLE', 'extra_errors': 'RESET plpgsql.extra_errors', 'extra_warnings': 'RESET plpgsql.extra_warnings',
             'check_asserts': 'RESET plpgsql.check_asserts', 'DateStyle': 'RESET DateStyle', 'extra_float_digits': 'RESET extra_float_digits',
             'IntervalStyle': 'RESET IntervalStyle', 'TimeZone': 'RESET TimeZone', 'plan_cache_mode': 'RESET plan_cache_mode',
             'changed_v': 'DROP INDEX IF EXISTS {schema}.changed_v', 'COLUMN': 'ALTER TABLE {schema}.changed DROP COLUMN IF EXISTS w',
             'REVOKE UPDATE': 'GRANT ALL ON {schema}.changed TO procedures_user', 'TRIGGER': 'DROP TRIGGER IF EXISTS changing ON {schema}.changed',
             'search_path': 'SET search_path = {schema}, procedures, public'}
# (a function that somebody has been granted is not compiled, though all may call it again)
COMMON_AS_BEFORE = {'DOMAIN': 'ALTER DOMAIN small_number DROP CONSTRAINT IF EXISTS extra', 'TYPE': 'ALTER TYPE pair DROP ATTRIBUTE IF EXISTS z',
                    'EXECUTE': "UPDATE pg_proc SET proacl = NULL WHERE oid IN ('pg_catalog.abs(int4)'::regprocedure, "
                               "'pg_catalog.int4pl(int4, int4)'::regprocedure) AND proacl IS NOT NULL",
                    'plus_one': 'DROP FUNCTION IF EXISTS plus_one(int4); '
                                'CREATE FUNCTION plus_one(i int4) RETURNS int4 LANGUAGE plpgsql AS $$ BEGIN RETURN i + 1; END $$',
                    'stable_twice': 'ALTER FUNCTION stable_twice(int8) STABLE'}

# what may happen while a function runs
MEANWHILE = ["EXECUTE 'DISCARD PLANS';", "EXECUTE 'DISCARD PLANS';", "EXECUTE 'ANALYZE changed';",
             "PERFORM set_config('search_path', 'shadow, pg_catalog, ' OPERATOR(pg_catalog.||) current_setting('search_path'), true);",
             "PERFORM set_config('search_path', replace(current_setting('search_path'), 'shadow, pg_catalog, ', ''), true);",
             "PERFORM set_config('plan_cache_mode', 'force_generic_plan', true);", "PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);",
             "PERFORM set_config('plpgsql.extra_errors', 'too_many_rows', true);", "PERFORM set_config('DateStyle', 'german', true);",
             "EXECUTE 'CREATE INDEX IF NOT EXISTS changed_v ON changed (v)';", "EXECUTE 'DROP INDEX IF EXISTS changed_v';",
             "EXECUTE 'ALTER TABLE changed ADD COLUMN IF NOT EXISTS w text';", "EXECUTE 'ALTER TABLE changed DROP COLUMN IF EXISTS w';"]


def pick(rng, type_):
    """A constant: mostly one that fails nowhere."""
    values = VALUES[type_]
    return rng.choice(values if rng.random() < 0.1 else values[:3])


class Function:
    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.labels = []            # (label, loops)
        self.scopes = [[(name_, type_, False) for name_, type_ in ARGS]]
        self.count = 0
        self.budget = rng.choice([6, 12, 20, 35])

    # ------------------------------------------------------------ expressions

    def visible(self):
        known = {v: (v, t, writable) for scope in self.scopes for v, t, writable in scope}
        return list(known.values())

    def variables(self, type_):
        return [v for v, t, _ in self.visible() if t == type_]

    def leaf(self, type_):
        known = self.variables(type_)
        if known and self.rng.random() < 0.7:
            return self.rng.choice(known)
        if self.rng.random() < 0.07:
            return 'NULL::' + type_
        return pick(self.rng, type_)

    def expr(self, type_, depth=2):
        r = self.rng
        if depth == 0 or r.random() < 0.25:
            return self.leaf(type_)
        d = depth - 1
        e = self.expr
        forms = [lambda: '(CASE WHEN %s THEN %s ELSE %s END)' % (e('bool', d), e(type_, d), e(type_, d)),
                 lambda: 'COALESCE(%s, %s)' % (e(type_, d), e(type_, d)),
                 lambda: 'NULLIF(%s, %s)' % (e(type_, d), e(type_, d)),
                 lambda: '%s(%s, %s)' % (r.choice(['greatest', 'least']), e(type_, d), e(type_, d))]
        own = []
        if type_ == 'bool':
            t = r.choice(TYPES)
            own = [lambda: '(%s %s %s)' % (e(t, d), r.choice(['<', '<=', '=', '<>', '>=', '>']), e(t, d)),
                   lambda: '(%s %s %s)' % (e('bool', d), r.choice(['AND', 'OR']), e('bool', d)),
                   lambda: '(NOT %s)' % e('bool', d),
                   lambda: '(%s IS %sNULL)' % (e(t, d), r.choice(['', 'NOT '])),
                   lambda: '(%s IS %sDISTINCT FROM %s)' % (e(t, d), r.choice(['', 'NOT ']), e(t, d)),
                   lambda: '(%s IS %s%s)' % (e('bool', d), r.choice(['', 'NOT ']), r.choice(['TRUE', 'FALSE', 'UNKNOWN'])),
                   lambda: '(%s IN (1, 2, 7))' % e(r.choice(INTS), d),
                   lambda: '(%s LIKE %s)' % (e('text', d), r.choice(["'a%'", "'_'"])),
                   lambda: 'FOUND']
        elif type_ in NUMBERS:
            own = [lambda: '(%s %s %s)' % (e(type_, d), r.choice('+-*/'), e(type_, d)),
                   lambda: '(%s + %s)' % (e(type_, d), r.choice(VALUES[type_][:4])),
                   lambda: '(- %s)' % e(type_, d),
                   lambda: 'abs(%s)' % e(type_, d)]
            if type_ in INTS:
                own += [lambda: '(%s %% %s)' % (e(type_, d), e(type_, d))]
            if type_ == 'int4':
                own += [lambda: 'length(%s)' % e('text', d), lambda: '(%s + %s)' % (e('int2', d), e('int4', d)),
                        lambda: 'plus_one(%s)' % e('int4', d), lambda: 'failing(%s)' % e('int4', d), lambda: "(%s - '2000-01-01'::date)" % e('date', d)]
            if type_ == 'int8':
                own += [lambda: '(%s * %s)' % (e('int8', d), e('int4', d)), lambda: 'stable_twice(%s)' % e('int8', d),
                        lambda: '(SELECT count(*) FROM changed WHERE id < %s)' % e('int4', d)]
            own += [lambda: '%s::%s' % (e(r.choice(NUMBERS), d), type_)]
        elif type_ == 'text':
            own = [lambda: '(%s || %s)' % (e('text', d), e('text', d)), lambda: 'upper(%s)' % e('text', d),
                   lambda: 'substr(%s, %s, 2)' % (e('text', d), e('int4', d)),
                   lambda: '%s::text' % e(r.choice(TYPES), d), lambda: 'md5(%s)' % e('text', d),
                   lambda: "replace(%s, 'a', %s)" % (e('text', d), e('text', d))]
        elif type_ == 'date':
            own = [lambda: '(%s + %s)' % (e('date', d), e('int4', d))]
        elif type_ == 'timestamp':
            own = [lambda: "(%s + interval '1 day')" % e('timestamp', d), lambda: '%s::timestamp' % e('date', d)]
        elif type_ == 'bytea':
            own = [lambda: '(%s || %s)' % (e('bytea', d), e('bytea', d))]
        elif type_ == 'interval':
            own = [lambda: '(%s + %s)' % (e('interval', d), e('interval', d)), lambda: '(%s * %s)' % (e('interval', d), e('float8', d)),
                   lambda: '(%s - %s)' % (e('timestamp', d), e('timestamp', d))]
        elif type_ == 'time':
            own = [lambda: '(%s + %s)' % (e('time', d), e('interval', d)), lambda: '%s::time' % e('timestamp', d)]
        elif type_ == 'jsonb':
            own = [lambda: '(%s || %s)' % (e('jsonb', d), e('jsonb', d)), lambda: "(%s -> 'a')" % e('jsonb', d), lambda: '%s::jsonb' % e('text', d)]
        elif type_ in ('name', 'bpchar', '"char"', 'uuid', 'varbit', 'inet', 'timetz'):
            own = [lambda: '%s::%s' % (e('text', d), type_)]
            if type_ == 'varbit':
                own += [lambda: '(%s || %s)' % (e('varbit', d), e('varbit', d))]
        elif type_ == 'timestamptz':
            own = [lambda: "(%s + interval '2 hours')" % e('timestamptz', d)]
        if type_ + '[]' in ARRAYS and (arrays := self.variables(type_ + '[]')):
            own += [lambda: '%s[%s]' % (r.choice(arrays), r.choice(['1', '2', 'a', e('int4', d)])),
                    lambda: r.choice(['%s[1][%s]', '(%s[1:2])[%s]']) % (r.choice(arrays), e('int4', d))]
        return r.choice(own * 2 + forms if own else forms)()

    # ------------------------------------------------------------- statements

    def put(self, depth, text):
        for line in text.split('\n'):
            self.lines.append('  ' * depth + line)
        if self.rng.random() < 0.1:
            self.lines.append('')

    def new(self, prefix='v'):
        self.count += 1
        return '%s%d' % (prefix, self.count)

    def declare(self, depth):
        """Variables of a block: the names can be used from here on."""
        r = self.rng
        mine = []
        self.scopes.append(mine)
        for _ in range(r.randint(0, 5)):
            name = self.new()
            if r.random() < 0.15:
                # a name that hides another
                name = r.choice([v for v, _, _ in self.visible() if v not in ('a', 'steps', 'said', 'p', 'q', 'o1', 'o2') and v not in self.records + self.integers])
            if name in [v for v, _, _ in mine]:
                continue
            if r.random() < 0.25:
                declared, type_ = r.choice(ODD)
                default = ''
                if declared == 'wide_word' and r.random() < 0.95:
                    default = " := %s" % (self.expr('text', 1) if r.random() < 0.1 else pick(r, 'text'))
                elif type_ is not None and r.random() < 0.5:
                    default = ' := %s' % self.expr(type_, 1)
                elif declared in ARRAYS and r.random() < 0.8:
                    default = r.choice([' := ARRAY[{0}, {1}]', ' := ARRAY[{0}, {1}]', ' := ARRAY[[{0}, {1}], [{1}, {0}]]', " := '{{}}'"]).format(
                        pick(r, ARRAYS[declared]), self.leaf(ARRAYS[declared]))
                elif declared == 'pair' and r.random() < 0.5:
                    default = ' := ROW(%s, %s)' % (self.leaf('int4'), self.leaf('text'))
                self.put(depth, '%s %s%s;' % (name, declared, default))
                mine.append((name, type_ or declared, True))
                continue
            type_ = r.choice(TYPES + NUMBERS)
            other = r.choice(NUMBERS) if type_ in NUMBERS and r.random() < 0.4 else type_
            kind = r.random()
            if kind < 0.1:
                self.put(depth, '%s CONSTANT %s := %s;' % (name, type_, self.expr(other)))
                mine.append((name, type_, False))
            elif kind < 0.2:
                self.put(depth, '%s %s NOT NULL := %s;' % (name, type_, self.expr(other)))
                mine.append((name, type_, True))
            elif kind < 0.7:
                self.put(depth, '%s %s := %s;' % (name, type_, self.expr(other)))
                mine.append((name, type_, True))
            else:
                self.put(depth, '%s %s;' % (name, type_))
                mine.append((name, type_, True))

    def targets(self):
        return [(v, t) for v, t, writable in self.visible() if writable]

    def guard(self, depth):
        self.put(depth, "steps := steps OPERATOR(pg_catalog.+) 1;\nIF steps > 60 THEN %s END IF;" %
                 self.rng.choice(["RAISE EXCEPTION 'too many steps: %', steps USING HINT = 'fewer';", self.leave()]))

    def all_values(self):
        return "concat_ws('|', %s)" % ', '.join(v for v, t, _ in self.visible() if t not in ('record',)) + "|| ''"

    def result(self):
        if self.returns == 'text':
            return self.all_values()
        return self.expr(self.returns)

    def leave(self):
        """RETURN, as it is in a function of this kind."""
        r = self.rng
        if self.kind in ('out', 'procedure'):
            return r.choice(['o2 := %s; RETURN;' % self.all_values(), 'RETURN;'])
        if self.kind == 'void':
            return "RAISE NOTICE '%%', %s; RETURN;" % self.all_values()
        if self.kind == 'pair':
            return 'RETURN %s;' % r.choice(['ROW(%s, %s)' % (self.expr('int4', 1), self.all_values()), 'NULL', '(%s, %s)::pair' % (self.leaf('int4'), self.leaf('text'))])
        if self.kind == 'poly':
            return 'RETURN %s;' % r.choice(['p', 'q', 'COALESCE(q, p)', 'CASE WHEN %s THEN p ELSE q END' % self.expr('bool', 1)])
        return 'RETURN %s;' % self.result()

    def body(self, depth, size):
        if self.rng.random() < 0.08:
            self.put(depth, 'NULL;')
            return
        for _ in range(self.rng.randint(1, size)):
            self.statement(depth)

    def loop_label(self):
        label = self.new('l') if self.rng.random() < 0.4 else None
        return label, ('<<%s>>\n' % label if label else '')

    def statement(self, depth):
        r = self.rng
        self.budget -= 1
        kinds = ['assign'] * 8 + ['exit', 'return', 'raise', 'perform', 'into', 'change', 'execute', 'diagnostics', 'assert', 'rows', 'fetch',
                                 'several', 'meanwhile']
        if self.kind == 'procedure':
            kinds += ['commit', 'commit']
        if self.kind == 'poly':
            kinds += ['poly', 'poly']
        if self.recursive:
            kinds += ['recursion', 'recursion']
        if depth < 5 and self.budget > 0:
            kinds += ['if'] * 4 + ['case', 'case_of', 'while', 'loop', 'for', 'for', 'for', 'block', 'block', 'exception', 'query',
                                   'foreach', 'fails_within', 'executed', 'cursor']
        getattr(self, 'do_' + r.choice(kinds))(depth)

    def do_assign(self, depth):
        r = self.rng
        targets = self.targets()
        if not targets:
            return self.put(depth, 'NULL;')
        name, type_ = r.choice(targets)
        if type_ in ARRAYS:
            return self.put(depth, r.choice(['%s[%s] := %s;' % (name, r.choice(['1', '3', 'a']), self.expr(ARRAYS[type_], 1)),
                                             '%s := %s || %s;' % (name, name, self.leaf(ARRAYS[type_]))]))
        if type_ == 'pair':
            return self.put(depth, r.choice(['%s.x := %s;' % (name, self.expr('int4', 1)), '%s := NULL;' % name,
                                             '%s.y := %s.x::text;' % (name, name)]))
        if type_ == 'record':
            return self.put(depth, r.choice(['%s := ROW(1, 2);' % name, 'SELECT id, v INTO %s FROM changed WHERE id = %s;' %
                                             (name, self.leaf('int4'))]))
        if type_ in NUMBERS and r.random() < 0.3:
            return self.put(depth, '%s := %s;' % (name, self.expr(r.choice(NUMBERS))))
        if r.random() < 0.06:
            return self.put(depth, '%s := NULL;' % name)
        if r.random() < 0.04:
            return self.put(depth, '%s := %s;' % (name, self.expr('text')))
        self.put(depth, '%s := %s;' % (name, self.expr(type_)))

    def condition(self):
        return self.expr('bool') if self.rng.random() < 0.95 else self.rng.choice(["'t'", '1', "'maybe'", 'NULL'])

    def do_if(self, depth):
        self.put(depth, 'IF %s THEN' % self.condition())
        self.body(depth + 1, 3)
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            self.put(depth, 'ELSIF %s THEN' % self.condition())
            self.body(depth + 1, 2)
        if self.rng.random() < 0.5:
            self.put(depth, 'ELSE')
            self.body(depth + 1, 2)
        self.put(depth, 'END IF;')

    def do_case(self, depth):
        self.put(depth, 'CASE')
        for _ in range(self.rng.randint(1, 3)):
            self.put(depth, 'WHEN %s THEN' % self.condition())
            self.body(depth + 1, 2)
        if self.rng.random() < 0.8:
            self.put(depth, 'ELSE')
            self.body(depth + 1, 2)
        self.put(depth, 'END CASE;')

    def do_case_of(self, depth):
        type_ = self.rng.choice(['int4', 'int4', 'text', 'int8', 'bool', 'date', 'numeric'] + TYPES)
        self.put(depth, 'CASE %s' % self.expr(type_))
        for _ in range(self.rng.randint(1, 3)):
            self.put(depth, 'WHEN %s THEN' % ', '.join(self.expr(type_, 1) for _ in range(self.rng.randint(1, 2))))
            self.body(depth + 1, 2)
        if self.rng.random() < 0.8:
            self.put(depth, 'ELSE')
            self.body(depth + 1, 2)
        self.put(depth, 'END CASE;')

    def loop(self, depth, head, label, size=3, extra=()):
        self.put(depth, head)
        self.labels.append((label, True))
        self.scopes.append(list(extra))
        self.guard(depth + 1)
        self.body(depth + 1, size)
        self.scopes.pop()
        self.labels.pop()

    def do_while(self, depth):
        label, mark = self.loop_label()
        self.loop(depth, '%sWHILE %s LOOP' % (mark, self.condition()), label)
        self.put(depth, 'END LOOP;')

    def do_loop(self, depth):
        label, mark = self.loop_label()
        self.loop(depth, mark + 'LOOP', label)
        self.put(depth + 1, 'EXIT WHEN steps > %d;' % self.rng.randint(1, 50))
        self.put(depth, 'END LOOP;')

    def do_for(self, depth):
        r = self.rng
        label, mark = self.loop_label()
        name = self.new('i')
        low = r.choice(['1', '0', '-3', 'a', '2147483645', 'b', 'd', "'1'", self.expr('int4')])
        high = r.choice(['3', '5', 'a', 'a + 3', '2147483647', '%s + 2' % low if not low.startswith("'") else '2', self.expr('int4')])
        by = r.choice(['', '', '', ' BY 2', ' BY a', ' BY %s' % self.expr('int4', 1)])
        reverse = r.random() < 0.25
        if reverse:
            low, high = high, low
        self.loop(depth, '%sFOR %s IN %s%s .. %s%s LOOP' % (mark, name, 'REVERSE ' if reverse else '', low, high, by), label,
                  extra=[(name, 'int4', r.random() < 0.2)])
        self.put(depth, 'END LOOP;')

    def do_query(self, depth):
        r = self.rng
        label, mark = self.loop_label()
        name = self.new()
        self.records.append(name)
        self.loop(depth, '%sFOR %s IN SELECT id, v FROM changed WHERE id < %s ORDER BY id LIMIT 4 LOOP' %
                  (mark, name, self.leaf('int4')), label)
        if r.random() < 0.5:
            self.put(depth + 1, 'steps := steps OPERATOR(pg_catalog.+) %s.id %% 2;' % name)
        self.put(depth, 'END LOOP;')

    def do_cursor(self, depth):
        label, mark = self.loop_label()
        name = self.new('c')
        self.put(depth, 'DECLARE\n  %s CURSOR (m int4) FOR SELECT id, v FROM changed WHERE id > m ORDER BY id LIMIT 4;\nBEGIN' % name)
        self.loop(depth + 1, '%sFOR %s IN %s(%s) LOOP' % (mark, name + 'r', name, self.leaf('int4')), label)
        self.put(depth + 1, 'END LOOP;')
        self.put(depth, 'END;')

    def do_foreach(self, depth):
        label, mark = self.loop_label()
        name = self.new('x')
        self.integers.append(name)
        self.loop(depth, '%sFOREACH %s IN ARRAY ARRAY[1, %s, 3] LOOP' % (mark, name, self.leaf('int4')), label,
                  extra=[(name, 'int4', True)])
        self.put(depth, 'END LOOP;')

    def block(self, depth, handles):
        label, mark = self.loop_label()
        self.put(depth, mark + 'DECLARE' if self.rng.random() < 0.7 else mark + 'DECLARE -- nothing')
        self.declare(depth + 1)
        self.put(depth, 'BEGIN')
        self.labels.append((label, False))
        self.body(depth + 1, 4)
        if handles:
            self.put(depth, 'EXCEPTION WHEN %s THEN' % self.rng.choice(
                ['OTHERS', 'division_by_zero', 'numeric_value_out_of_range', 'OTHERS', 'raise_exception OR case_not_found']))
            self.put(depth + 1, "RAISE NOTICE 'handled % %', SQLSTATE, SQLERRM;")
            if self.rng.random() < 0.5:
                self.put(depth + 1, 'GET STACKED DIAGNOSTICS said = PG_EXCEPTION_CONTEXT;\nRAISE NOTICE \'%\', said;')
            self.body(depth + 1, 2)
            if self.rng.random() < 0.1:
                self.put(depth + 1, 'RAISE;')
        self.labels.pop()
        self.scopes.pop()
        self.put(depth, 'END%s;' % (' ' + label if label and self.rng.random() < 0.5 else ''))

    def do_block(self, depth):
        self.block(depth, False)

    def do_exception(self, depth):
        self.block(depth, True)

    def do_fails_within(self, depth):
        """A block that probably fails at one of its variables, or between them."""
        r = self.rng
        self.put(depth, 'BEGIN')
        self.put(depth + 1, 'DECLARE')
        name = self.new()
        self.put(depth + 2, '%s %s := %s;' % (name, r.choice(['int4', 'int2', 'text NOT NULL', 'small_number', 'numeric(3,1)']), r.choice(
            ['1 / (steps - steps)', "NULLIF('a', 'a')", '1000 + steps', self.expr('int4', 1), 'failing(steps)', "'x' || steps"])))
        self.scopes.append([])
        self.put(depth + 1, 'BEGIN')
        self.labels.append((None, False))
        self.body(depth + 2, 2)
        self.put(depth + 1, 'END;')
        self.put(depth, r.choice(['EXCEPTION WHEN OTHERS THEN NULL;', 'EXCEPTION WHEN division_by_zero OR not_null_violation THEN',
                                  "EXCEPTION WHEN data_exception THEN\n  RAISE NOTICE '% %', SQLERRM, steps;\n  said := SQLSTATE;"]))
        self.labels.pop()
        self.scopes.pop()
        self.put(depth, 'END;')
        if r.random() < 0.5:
            self.put(depth, "GET DIAGNOSTICS said = PG_CONTEXT;\nRAISE NOTICE '%', said;")

    def do_executed(self, depth):
        r = self.rng
        label, mark = self.loop_label()
        name = self.new('x')
        self.integers.append(name)
        self.loop(depth, "%sFOR %s IN EXECUTE 'SELECT id FROM changed WHERE id < $1 ORDER BY id LIMIT 3' USING %s LOOP" %
                  (mark, name, self.leaf('int4')), label, extra=[(name, 'int4', True)])
        self.put(depth, 'END LOOP;')

    def do_exit(self, depth):
        r = self.rng
        what = r.choice(['EXIT', 'CONTINUE'])
        labels = [l for l, loops in self.labels if l and (loops or what == 'EXIT')]
        when = ' WHEN %s' % self.condition() if r.random() < 0.8 else ''
        if labels and r.random() < 0.6:
            self.put(depth, '%s %s%s;' % (what, r.choice(labels), when))
        elif any(loops for _, loops in self.labels):
            self.put(depth, '%s%s;' % (what, when))
        else:
            self.put(depth, 'NULL;')

    def do_return(self, depth):
        if self.rng.random() < 0.3:
            self.put(depth, self.leave())
        else:
            self.put(depth, 'steps := steps OPERATOR(pg_catalog.+) 1;')

    def do_commit(self, depth):
        self.put(depth, self.rng.choice(['COMMIT;', 'COMMIT;', 'ROLLBACK;', 'COMMIT AND CHAIN;']))

    def do_poly(self, depth):
        self.put(depth, self.rng.choice(['q := p;', 'q := NULL;', 'IF p = q THEN steps := steps OPERATOR(pg_catalog.+) 1; END IF;', 'q := COALESCE(q, p);',
                                         'CASE p WHEN q THEN q := NULL; ELSE q := p; END CASE;', 'said := p::text || q::text;',
                                         'q := %s;' % self.expr('text', 1), 'SELECT p INTO q;']))

    def do_recursion(self, depth):
        arguments = 'a - 1, ' + ', '.join(self.leaf(type_) for _, type_ in ARGS[1:])
        if self.kind in ('out', 'procedure', 'void', 'pair', 'poly'):
            return self.put(depth, 'PERFORM %s(%s);' % (self.name, arguments))
        targets = [v for v, t in self.targets() if t == self.returns]
        forms = ['PERFORM {0};', "RAISE NOTICE 'again %', {0};", 'IF {0} IS NULL THEN steps := steps OPERATOR(pg_catalog.+) 1; END IF;']
        if targets:
            forms += ['%s := {0};' % targets[0], 'SELECT {0} INTO %s;' % targets[0], 'SELECT {0} INTO %s FROM changed WHERE id < 3;' % targets[0]]
        self.put(depth, self.rng.choice(forms).format('%s(%s)' % (self.name, arguments)))

    def do_rows(self, depth):
        """Rows into several variables, or a record."""
        r = self.rng
        targets = [v for v, t in self.targets() if t in ('int4', 'int8', 'numeric', 'text', 'date')]
        query = r.choice(['SELECT id, v {0} FROM changed WHERE id <= {1} ORDER BY id', 'UPDATE changed SET v = v % 1000 + 2 WHERE id = {1} RETURNING id, v {0}',
                          'SELECT {1}, {2} {0}', 'INSERT INTO changed VALUES ({1}, 3) ON CONFLICT (id) DO UPDATE SET v = 6 RETURNING v, id {0}',
                          'WITH x AS (UPDATE changed SET v = 1 WHERE id = {1} RETURNING id, v) SELECT * {0} FROM x',
                          'SELECT id, v {0} FROM changed WHERE id = {1} FOR UPDATE', 'DELETE FROM changed WHERE id = {1} RETURNING * {0}'])
        into = ''
        if len(targets) > 1 and r.random() < 0.8:
            into = 'INTO %s%s' % (r.choice(['', 'STRICT ']), ', '.join(r.sample(targets, 2)))
        elif r.random() < 0.7 and not query.startswith('DELETE'):
            name = self.new()
            self.records.append(name)
            into = 'INTO ' + name
        self.put(depth, query.format(into, self.expr('int4', 1), self.expr(r.choice(TYPES), 1)) + ';')

    def do_several(self, depth):
        """Rows of many columns, or none, for variables of all kinds."""
        r = self.rng
        targets = [(v, t) for v, t in self.targets() if t not in ('pair', 'record')]
        names = [v for v, _ in r.sample(targets, min(len(targets), r.randint(3, 6)))]
        if r.random() < 0.15 or len(names) < 3:
            return self.put(depth, r.choice(['SELECT FROM changed WHERE id = %s;', 'PERFORM FROM changed WHERE id < %s;']) % self.leaf('int4'))
        types = dict(targets)
        columns = [n if types[n] in VALUES and r.random() < 0.2 else self.expr(types[n], 1) if types[n] in VALUES else 'NULL' for n in names]
        self.put(depth, 'SELECT %s INTO %s%s%s;' % (', '.join(columns), r.choice(['', '', 'STRICT ']), ', '.join(names), r.choice(
            ['', '', ' FROM changed WHERE id = %s' % self.leaf('int4'), ' FROM changed WHERE id < %s ORDER BY id' % self.leaf('int4')])))

    def do_meanwhile(self, depth):
        if self.meanwhile:
            self.put(depth, self.rng.choice(MEANWHILE))
        else:
            self.put(depth, 'steps := steps OPERATOR(pg_catalog.+) 1;')

    def do_fetch(self, depth):
        r = self.rng
        targets = [v for v, t in self.targets() if t in ('int4', 'int8', 'numeric', 'text')]
        if not targets:
            return self.put(depth, 'NULL;')
        name = self.new('c')
        self.put(depth, 'DECLARE\n  %s CURSOR (m int4) FOR SELECT v FROM changed WHERE id > m ORDER BY id;\nBEGIN' % name)
        self.put(depth + 1, 'OPEN %s(%s);\nFETCH %s INTO %s;' % (name, self.leaf('int4'), name, targets[0]))
        if r.random() < 0.5:
            self.put(depth + 1, 'IF FOUND THEN\n  MOVE %s;\n  steps := steps OPERATOR(pg_catalog.+) 1;\nEND IF;' % name)
        self.put(depth + 1, 'CLOSE %s;' % name)
        self.put(depth, 'END;')

    def do_raise(self, depth):
        r = self.rng
        level = r.choice(['NOTICE'] * 9 + ['EXCEPTION'])
        self.put(depth, "RAISE %s 'at %%: %%', steps, %s%s;" % (level, self.expr(r.choice(TYPES)), r.choice(
            ['', " USING DETAIL = %s" % self.leaf('text'), " USING ERRCODE = '22012'"])))

    def do_perform(self, depth):
        self.put(depth, 'PERFORM %s;' % self.expr(self.rng.choice(TYPES)))

    def do_into(self, depth):
        targets = [v for v, t in self.targets() if t in ('int4', 'int8', 'numeric', 'text')]
        if targets:
            self.put(depth, 'SELECT v INTO %s%s FROM changed WHERE id = %s;' %
                     (self.rng.choice(['', '', 'STRICT ']), self.rng.choice(targets), self.expr('int4', 1)))
        else:
            self.put(depth, 'PERFORM 1 FROM changed WHERE id = %s;' % self.expr('int4', 1))

    def do_change(self, depth):
        self.put(depth, self.rng.choice(['UPDATE changed SET v = v %% 1000 + 1 WHERE id = %s;', 'DELETE FROM changed WHERE id = %s AND id > 20;',
                                         'INSERT INTO changed VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET v = 5;']) %
                 self.expr('int4', 1))

    def do_execute(self, depth):
        targets = [v for v, t in self.targets() if t in NUMBERS + ['text']]
        self.put(depth, self.rng.choice(["EXECUTE 'SELECT 1 / $1' USING %s;" % self.leaf('int4'),
                                         "EXECUTE 'SET LOCAL enable_sort = on';",
                                         "EXECUTE 'SELECT v FROM changed WHERE id = $1' INTO %s USING %s;" % (self.rng.choice(targets), self.expr('int4', 1))]))

    def do_diagnostics(self, depth):
        targets = [v for v, t in self.targets() if t in ('int4', 'int8', 'numeric', 'text')]
        if targets:
            self.put(depth, 'GET DIAGNOSTICS %s = %s;' % (self.rng.choice(targets), self.rng.choice(['ROW_COUNT', 'ROW_COUNT', 'PG_CONTEXT'])))
        else:
            self.put(depth, 'NULL;')

    def do_assert(self, depth):
        self.put(depth, 'ASSERT steps < 50 OR %s, %s;' % (self.expr('bool', 1), self.leaf('text')))

    # -------------------------------------------------------------- the whole

    def text(self):
        r = self.rng
        self.records = []
        self.integers = []
        self.returns = r.choice(['text', 'text', 'text'] + TYPES)
        self.kind = r.choice(['scalar'] * 12 + ['out', 'out', 'void', 'procedure', 'procedure', 'pair', 'domain', 'poly'])
        if self.kind == 'domain':
            self.returns = 'int4'
        # what is returned may have to become another type; one name has one
        declared = self.returns
        if declared in NUMBERS and r.random() < 0.3:
            declared = r.choice(NUMBERS)
        self.name = 'f_' + (declared.strip('"') if self.kind == 'scalar' else self.kind)
        self.recursive = r.random() < 0.2
        self.meanwhile = r.random() < 0.4
        if r.random() < 0.1:
            self.put(0, r.choice(['#variable_conflict use_variable', '#variable_conflict use_column', '#print_strict_params on']))
        label, mark = (self.new('l'), True) if r.random() < 0.2 else (None, False)
        if mark:
            self.put(0, '<<%s>>' % label)
        self.put(0, 'DECLARE')
        self.put(1, 'steps int4 := 0;\nsaid text;')
        self.scopes[0].append(('steps', 'int4', False))
        self.scopes[0].append(('said', 'text', True))
        if self.kind in ('out', 'procedure'):
            self.scopes[0] += [('o1', 'int4', True), ('o2', 'text', True)]
        if self.kind == 'poly':
            self.put(1, 'q p%TYPE;')
            self.scopes[0] += [('p', 'any', False), ('q', 'any', False)]
        at = len(self.lines)
        self.declare(1)
        self.put(0, 'BEGIN')
        if self.recursive:
            # (what is counted is undone with errors that are handled, up to a hundred)
            self.put(1, 'IF a < -3 OR bump() > 12 THEN')
            self.put(2, self.leave())
            self.put(1, 'END IF;')
        self.labels.append((label, False))
        while self.budget > 0:
            self.statement(1)
        if r.random() < 0.97:
            self.put(1, self.leave())
        self.put(0, 'END')
        extra = ['  %s record;' % v for v in self.records] + ['  %s int4;' % v for v in self.integers]
        self.lines[at:at] = extra
        parameters = ['%s %s' % arg for arg in ARGS] + {'out': ['OUT o1 int4', 'INOUT o2 text'], 'procedure': ['INOUT o1 int4', 'INOUT o2 text'],
                                                         'poly': ['p anyelement']}.get(self.kind, [])
        returns = {'out': '', 'procedure': '', 'void': 'RETURNS void', 'pair': 'RETURNS pair', 'domain': 'RETURNS small_number',
                   'poly': 'RETURNS anyelement'}.get(self.kind, 'RETURNS ' + declared)
        options = r.choice(['', '', '', 'STABLE', 'STRICT', 'SECURITY DEFINER', 'SET extra_float_digits = -2'])
        return 'CREATE OR REPLACE %s %s(%s) %s LANGUAGE plpgsql %s AS $fn$\n%s\n$fn$' % (
            'PROCEDURE' if self.kind == 'procedure' else 'FUNCTION', self.name, ', '.join(parameters), returns,
            options if self.kind != 'procedure' else '', '\n'.join(self.lines))


class Session:
    """The protocol's simple queries, which can be sent before the ones before them are answered."""

    def __init__(self, settings, schema):
        self.schema = schema
        self.anonymous = schema.encode()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect('%s/.s.PGSQL.%s' % (os.environ['PGHOST'], os.environ.get('PGPORT', '5432')))
        self.answers = self.socket.makefile('rb', 1 << 16)
        body = struct.pack('!I', 196608) + ('user\0%s\0database\0%s\0\0' % (
            os.environ.get('PGUSER', 'postgres'), os.environ.get('PGDATABASE', 'postgres'))).encode()
        self.socket.sendall(struct.pack('!I', len(body) + 4) + body)
        self.receive()
        self.run('SET search_path = %s, procedures, public' % schema)
        self.run("SET client_min_messages = notice")
        self.run("SET statement_timeout = '60s'")
        for setting in settings:
            self.run('SET ' + setting)

    def send(self, statements):
        messages = b''
        for sql in statements:
            text = sql.replace('{schema}', self.schema).encode()
            messages += b'Q' + struct.pack('!I', len(text) + 5) + text + b'\0'
        self.socket.sendall(messages)

    def receive(self):
        """All that a statement was answered: (kind, what it says), without places in sources.  Each has a schema of its own."""
        answer = []
        while True:
            head = self.answers.read(5)
            if len(head) < 5:
                raise SystemExit('the connection is gone after %s' % (answer,))
            kind, length = struct.unpack('!cI', head)
            body = self.answers.read(length - 4)
            if kind in b'TSKR':
                continue
            if kind in b'EN':
                body = b'\n'.join([field for field in body.split(b'\0') if field[:1] not in b'FLRP'])
            answer.append((kind, body.replace(self.anonymous, b'schema_x')))
            if kind == b'Z':
                return answer

    def run(self, sql):
        self.send([sql])
        return self.receive()

    def value(self, sql):
        """A row, of texts."""
        for kind, body in self.run(sql):
            if kind == b'D':
                row, at = [], 2
                while at < len(body):
                    length, = struct.unpack_from('!i', body, at)
                    row.append(None if length < 0 else body[at + 4:at + 4 + length].decode())
                    at += 4 + max(length, 0)
                return row
        return None


def failure(answer):
    """SQLSTATE, or none."""
    for kind, body in answer:
        if kind == b'E':
            return re.search(b'^C(.*)$', body, re.M).group(1).decode()
    return None


def call(rng, function):
    args = [rng.choice(['1', '2', '3', '7', '-1', '0'])] + [pick(rng, type_) for _, type_ in ARGS[1:]]
    if rng.random() < 0.2:
        i = rng.randrange(len(args))
        args[i] = rng.choice(VALUES[ARGS[i][1]] + ['NULL'])
    args += {'out': ["'o'"], 'procedure': ['3', "'o'"], 'poly': [pick(rng, rng.choice(['int4', 'text', 'numeric', 'date', 'bool', 'jsonb']))]}.get(
        function.kind, [])
    return '%s(%s)' % (function.name, ', '.join(args))


def one_call(rng, function):
    """A statement that calls it once or more."""
    if function.kind == 'procedure':
        if rng.random() < 0.6:
            return 'CALL ' + call(rng, function)
        return ('DO $do$ DECLARE i int4; s text; BEGIN CALL %s; RAISE NOTICE $a$%%$a$, s; EXCEPTION WHEN OTHERS THEN RAISE NOTICE $a$%% %%$a$, SQLSTATE, SQLERRM; '
                'END $do$' % call(rng, function).replace("3, 'o')", 'i, s)'))
    if rng.random() < 0.5:
        text = '' if function.kind == 'void' else '::text'
        return rng.choice(['SELECT %s', 'SELECT %s', 'SELECT %s FROM generate_series(1, 3)']).replace('%s', call(rng, function) + text)
    # errors, caught in one transaction
    return 'SELECT caught(c) FROM unnest(ARRAY[$a$%s$a$, $a$%s$a$, $a$%s$a$]) c' % tuple(call(rng, function) for _ in range(3))


# what is machine code?
KNOWN = ['executions', 'compiled_executions', 'statements', 'interpreted_statements', 'expressions', 'interpreted_expressions', 'compile_ms']
ROUND = 500     # functions


class Totals:
    def __init__(self):
        self.made = self.calls = self.differences = 0
        self.failed = collections.Counter()
        self.known = [0] * len(KNOWN)

    def add(self, row):
        if row:
            self.known = [a + float(b or 0) for a, b in zip(self.known, row)]


class TooLong(Exception):
    """A function that takes too long to compare."""


def as_before(events, undo):
    statements = [statement for word, statement in undo.items() if word in events]
    return ['; '.join(statements)] if statements else []


def both(sessions, statements):
    """Executed in both, which work at the same time: the interpreter's answers, and whether all are equal."""
    equal = True
    for session in sessions:
        session.send(statements)
    answers = []
    for sql in statements:
        a, b = (session.receive() for session in sessions)
        if '57014' in (failure(a), failure(b)):
            raise TooLong(sql)
        # (strings of a gigabyte are the server's own)
        internal = any((b'XX000' in body or b'CXX' in body) and b'invalid memory alloc request size' not in body for _, body in a)
        if equal and (a != b or internal):
            print('internal error:' if internal else 'difference:', sql, '\n  interpreted:', a, '\n  compiled:   ', b)
            equal = False
        answers.append(a)
    return answers, equal


def one_function(rng, sessions, maker, totals, options):
    """Made, called some times, and all as before."""
    function = Function(rng)
    text = function.text()
    answer = maker.run(text)
    if failure(answer):
        raise SystemExit('%s\na function cannot be made: %s' % (text, answer))
    totals.made += 1
    if options.verbose:
        print(text, flush=True)

    eventful = rng.random() < 0.5 or function.meanwhile
    within = rng.random() < 0.2
    events = [text] if function.meanwhile else []
    common_events = []
    equal = True
    todo = ['SET mot.jit_procedures_above_executions = %d' % rng.choice([0, 1, 1, 2, 3])] + ['BEGIN'] * within
    calls = set()

    def do():
        nonlocal equal
        answers, same = both(sessions, todo)
        equal = equal and same
        for i in calls:
            totals.calls += 1
            totals.failed[failure(answers[i])] += 1
        todo.clear()
        calls.clear()
        return answers

    for _ in range(rng.randint(4, 8)):
        todo += ['SET procedures.n = 0', "SELECT setval('calls', 1, false)"] * function.recursive + ['SAVEPOINT s'] * within
        if eventful and rng.random() < 0.6:
            if within or rng.random() < 0.7:
                events.append(rng.choice(EVENTS))
                todo.append(events[-1])
            else:
                common_events.append(rng.choice(COMMON_EVENTS))
                do()
                maker.run(common_events[-1])
        calls.add(len(todo))
        todo.append(one_call(rng, function))
        if within and failure(do()[-1]):
            todo.append('ROLLBACK TO s')
    if within:
        todo.append(rng.choice(['COMMIT', 'ROLLBACK']))
    todo += as_before(' '.join(events), AS_BEFORE)
    do()
    if not equal:
        totals.differences += 1
        print(text, flush=True)
    for statement in as_before(' '.join(common_events), COMMON_AS_BEFORE):
        maker.run(statement)
    if totals.made % 10 == 0:
        totals.add(sessions[1].value("SELECT %s FROM public.mot_stat_procedures WHERE function = 'procedures.%s'::regproc" % (', '.join(KNOWN), function.name)))


def one_round(seed, functions, totals, options):
    rng = random.Random(seed)
    maker = Session([], 'public')
    maker.run('DO $$ BEGIN CREATE ROLE procedures_user; EXCEPTION WHEN duplicate_object THEN NULL; END $$')
    maker.run('SET allow_system_table_mods = on')
    for statement in SETUP.split(';\n'):
        if statement.strip():
            answer = maker.run(statement.replace('\\;', ';'))
            if failure(answer):
                raise SystemExit('%s: %s' % (statement, answer))
    maker.run(COMMON_AS_BEFORE['EXECUTE'])
    kind = rng.choice(['heap', 'mot'])
    kind = options.tables or kind
    # each session has a table of its own, which both find by the same name
    for schema in ('schema_a', 'schema_b'):
        maker.run('DROP SCHEMA IF EXISTS %s CASCADE' % schema)
        maker.run('CREATE SCHEMA %s' % schema)
        maker.run('CREATE TABLE %s.changed (id int4 PRIMARY KEY, v int4 NOT NULL) USING %s%s' %
                  (schema, kind, ' WITH (autovacuum_enabled = off)' if kind == 'heap' else ''))
        maker.run('INSERT INTO %s.changed SELECT i, i * 10 FROM generate_series(1, 20) i' % schema)
        maker.run('CREATE SEQUENCE %s.calls' % schema)
        maker.run('GRANT ALL ON %s.changed, %s.calls TO procedures_user' % (schema, schema))
    maker.run('GRANT USAGE ON SCHEMA procedures, shadow, schema_a, schema_b TO procedures_user')
    sessions = (Session(['mot.jit_procedures = off'], 'schema_a'), Session(['mot.jit_procedures = on'], 'schema_b'))
    differences = totals.differences
    memory = options.memory
    for i in range(1, functions + 1):
        try:
            one_function(rng, sessions, maker, totals, options)
        except TooLong as statement:
            print('takes too long:', statement, '(%d of the round of seed %d)' % (i, seed), flush=True)
            memory = False
            break
        if (i % 50 == 0 or i == functions) and not both(sessions, ['SELECT * FROM changed ORDER BY id'])[1]:
            totals.differences += 1
        if totals.differences > differences:
            # (what comes after may be its consequence)
            print('(%d of the round of seed %d, %s tables)' % (i, seed, kind), flush=True)
            break
    if memory:
        print('%d functions, %d differences; memory:' % (totals.made, totals.differences), ', '.join('%s %s' % tuple(session.value(
            "SELECT sum(used_bytes)::int8, pg_size_bytes(substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\\s*(\\d+ kB)')) "
            "FROM pg_backend_memory_contexts")) for session in sessions), flush=True)
    for session in sessions:
        session.socket.shutdown(socket.SHUT_RDWR)
    maker.run('DROP SCHEMA procedures, shadow, schema_a, schema_b CASCADE; DROP ROLE procedures_user')
    maker.socket.shutdown(socket.SHUT_RDWR)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument('--functions', type=int, default=300)
    parser.add_argument('--tables', choices=['heap', 'mot'])
    parser.add_argument('--memory', action='store_true')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    print('seed', options.seed)
    totals = Totals()
    seed = options.seed
    while totals.made < options.functions and totals.differences < 5:
        one_round(seed, min(ROUND, options.functions - totals.made), totals, options)
        seed += 1
    known = dict(zip(KNOWN, totals.known))
    print('%d functions, %d calls, %d of them failed; %d differences' % (totals.made, totals.calls, totals.calls - totals.failed[None], totals.differences))
    print('failures:', [item for item in totals.failed.most_common(13) if item[0]])
    print('of every tenth function:', ', '.join('%d %s' % (n, what.replace('_', ' ')) for what, n in known.items()))
    if known['compiled_executions'] < known['executions'] / 3:
        raise SystemExit('hardly anything was compiled')
    sys.exit(totals.differences > 0)


if __name__ == '__main__':
    main()
