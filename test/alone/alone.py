#!/usr/bin/python3
"""alone.py: transactions of one session alone, on twins of tables.

    alone.py [options]              (the connection is libpq's: PGHOST, ...)

With nobody else there a transaction never fails with 40001 or 40P01, at any
isolation level, and does on memory-optimized tables what it does on heap
tables.  Random transactions are run on three twins, one after the other, so
that each is alone: heap tables, memory-optimized ones whose statements the
server's executor runs, and memory-optimized ones whose statements run without
it from their first execution on.  In each twin there is a heap table, too, so
that transactions are of both kinds.  Everything must be the same: rows, counts,
errors, what COMMIT says, and what is in the tables after each transaction.

What a transaction does is drawn as it goes on the heap twin, because it depends
on what has failed; the other twins are sent the same.  It looks rows up and
scans and locks them, in ways that find what it has written itself; inserts,
updates (keys, too) and deletes rows of which there are few, so that it meets
its own ones; deletes a key and inserts it again, meets duplicates, upserts;
takes some of it back with savepoints, released or rolled back to, and with
blocks of PL/pgSQL that fail; and goes on in cursors that it opened before.

    --seed N          to repeat a run (printed at its beginning)
    --transactions N  (default 1000); tables are made anew every 60
    --settings "name=value ..."   for the third kind
    --verbose         print every statement

Statements are such that which row they meet first makes no difference, except
for the one that an error names if there are several (then only the SQLSTATE is
compared).
"""

import argparse
import collections
import random
import sys

import psycopg2
import psycopg2.extensions

PERIOD = 60                             # transactions with the same tables
NEVER = ('40001', '40P01')

FUNCTIONS = """
CREATE FUNCTION bump(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int;
BEGIN
    UPDATE a SET v = v + 1 WHERE id = k RETURNING v INTO r;
    RETURN r;
END $$;
CREATE FUNCTION put(k int, x int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 3 LOOP
        UPDATE a SET v = v + x WHERE id = k;
        IF found THEN RETURN 'updated ' || i; END IF;
        BEGIN
            INSERT INTO a VALUES (k, x, x, 'put');
            RETURN 'inserted ' || i;
        EXCEPTION WHEN unique_violation THEN
            DELETE FROM a WHERE u = x AND id > k;
        END;
    END LOOP;
    RETURN 'neither';
END $$;
CREATE FUNCTION attempt(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
CREATE FUNCTION undo(statement text, look text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n int; m int;
BEGIN
    BEGIN
        EXECUTE statement;
        EXECUTE look;
        GET DIAGNOSTICS n = ROW_COUNT;
        RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN
        EXECUTE look;
        GET DIAGNOSTICS m = ROW_COUNT;
    END;
    RETURN n || ' ' || m;
END $$;
CREATE FUNCTION walk(lo int, hi int, step int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; seen text := '';
BEGIN
    FOR r IN SELECT id, v FROM a WHERE id BETWEEN lo AND hi ORDER BY id LOOP
        seen := seen || r.id || ':' || coalesce(r.v, 0) || ' ';
        CASE (r.id + step) % 5
            WHEN 0 THEN DELETE FROM a WHERE id = r.id + 1;
            WHEN 1 THEN
                DELETE FROM a WHERE id = r.id;
                INSERT INTO a VALUES (r.id, NULL, r.v, 'walk');
            WHEN 2 THEN
                BEGIN
                    UPDATE a SET id = r.id + 1 WHERE id = r.id;
                EXCEPTION WHEN unique_violation THEN
                    seen := seen || '! ';
                END;
            WHEN 3 THEN UPDATE a SET v = v + 1 WHERE id >= r.id;
            ELSE PERFORM FROM a WHERE id BETWEEN r.id AND hi FOR UPDATE;
        END CASE;
    END LOOP;
    RETURN seen;
END $$;
CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.v % 4 = 1 THEN NEW.v := NEW.v + 1; END IF;
    IF NEW.v % 11 = 3 THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO n VALUES (OLD.id, NEW.v);
    RETURN NULL;
END $$;
"""

TRIGGERS = """
CREATE TRIGGER odd BEFORE INSERT OR UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION odd();
CREATE TRIGGER note AFTER UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION note();
"""


class Table:
    """The first columns are its key; those of 'unique' are, too.  x, y: what may be summed."""

    def __init__(self, name, columns, key, unique, checked):
        self.name, self.columns, self.key, self.unique, self.checked = name, columns, key, unique, checked
        self.numbers = [c for c in columns if c not in ('y', 't')]


A = Table('a', ['id', 'u', 'v', 't'], ['id'], [['u']], True)
B = Table('b', ['x', 'y', 'v', 'w'], ['x', 'y'], [['w', 'x']], False)
N = Table('n', ['id', 'v'], [], [], False)
H = Table('h', ['id', 'u', 'v', 't'], ['id'], [['u']], True)
TABLES = [A, B, N, H]


class Maker:
    """One random statement; prepared: with parameters, whose ranges are kept."""

    def __init__(self, rnd, prepared):
        self.rnd, self.prepared, self.ranges = rnd, prepared, []
        self.exact = True               # an error is the same to the letter

    def num(self, lo=1, hi=14):
        if not self.prepared:
            return str(self.rnd.randint(lo, hi))
        self.ranges.append((lo, hi))
        return '$%d' % len(self.ranges)

    def value(self, column):
        if column == 'y':
            return 'chr(96 + %s)' % self.num(1, 4)
        if column == 't':
            return self.rnd.choice(["'t'", "repeat('long', 100)", 'NULL'])
        if column in ('u', 'w') and self.rnd.random() < 0.2:
            return 'NULL'
        return self.num()

    def table(self):
        return self.rnd.choices(TABLES, [8, 4, 2, 3])[0]

    def by_key(self, table, columns):
        return ' AND '.join('%s = %s' % (c, self.value(c).replace('NULL', '3')) for c in columns)

    def where(self, table, wide):
        rnd = self.rnd
        r = rnd.random()
        keys = [k for k in [table.key] * 3 + table.unique if k]
        if keys and r < 0.55:
            return self.by_key(table, rnd.choice(keys))
        self.exact = False
        first = rnd.choice(keys)[0] if keys and rnd.random() < 0.7 else rnd.choice(table.numbers)
        if r < 0.65:
            return '%s IN (%s)' % (first, ', '.join(self.num() for _ in range(rnd.randint(2, 4))))
        if r < 0.85:
            low = self.num(1, 12)
            return '%s BETWEEN %s AND %s + %s' % (first, low, low, self.num(0, 6))
        if r < 0.9:
            return '%s %s %s' % (first, rnd.choice(['<', '<=', '>', '>=']), self.num())
        if r < 0.95:
            return '%s IS NULL' % rnd.choice(table.columns)
        return 'true' if wide else '%s = %s' % (first, self.num())

    def lock(self, chance):
        if self.rnd.random() >= chance:
            return ''
        return ' FOR %s%s' % (self.rnd.choice(['UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE']),
                              self.rnd.choice(['', '', ' NOWAIT', ' SKIP LOCKED']))

    def order(self, table):
        return ' ORDER BY ' + ', '.join(self.rnd.choice([[], ['v']]) + table.columns)

    def select(self):
        rnd = self.rnd
        table = self.table()
        r = rnd.random()
        if r < 0.15:
            return 'SELECT count(*), sum(v), min(%s) FROM %s' % (table.columns[0], table.name)
        if r < 0.25:
            return 'SELECT count(*), max(%s) FROM %s WHERE %s' % (table.columns[0], table.name, self.where(table, True))
        if r < 0.35:
            other = self.table()
            return 'SELECT p.*, q.* FROM %s p JOIN %s q ON q.%s = p.%s WHERE p.%s = %s' % (
                table.name, other.name, other.columns[0], rnd.choice(table.numbers), rnd.choice(table.numbers), self.num())
        if r < 0.4:
            other = self.table()
            return 'SELECT * FROM %s p WHERE %sEXISTS (SELECT FROM %s q WHERE q.%s = p.v)' % (
                table.name, rnd.choice(['', 'NOT ']), other.name, other.columns[0])
        if r < 0.6:
            return 'SELECT * FROM %s WHERE %s%s LIMIT %s%s' % (
                table.name, self.where(table, True), self.order(table), self.num(0, 4), self.lock(0.3))
        return 'SELECT * FROM %s WHERE %s%s' % (table.name, self.where(table, True), self.lock(0.3))

    def returning(self, table):
        return ' RETURNING *' if self.rnd.random() < 0.5 else ''

    def row(self, table):
        return '(%s)' % ', '.join(self.value(c) for c in table.columns)

    def insert(self):
        rnd = self.rnd
        table = self.table()
        r = rnd.random()
        if r < 0.6:
            rows = 'VALUES ' + self.row(table)
        elif r < 0.8:
            self.exact = False
            rows = 'VALUES ' + ', '.join(self.row(table) for _ in range(rnd.randint(2, 4)))
        else:
            self.exact = False
            source = rnd.choice([A, H]) if table in (A, H) else table
            columns = ['%s + %s' % (c, self.num(0, 3)) if c in ('id', 'u', 'x', 'w') else c for c in table.columns]
            rows = 'SELECT %s FROM %s WHERE %s' % (', '.join(columns), source.name, self.where(source, True))
            rows += ' ORDER BY ' + ', '.join(source.columns)
        text = 'INSERT INTO %s %s' % (table.name, rows)
        if table.key and rnd.random() < 0.45:
            target = rnd.choice([table.key] * 2 + table.unique)
            if rnd.random() < 0.4:
                text += ' ON CONFLICT%s DO NOTHING' % rnd.choice(['', ' (%s)' % ', '.join(target)])
            else:
                changes = rnd.choice(['v = %s.v + EXCLUDED.v' % table.name, 'v = EXCLUDED.v', 'v = %s' % self.num(),
                                      '%s = EXCLUDED.%s' % ((table.columns[0],) * 2),
                                      '%s = EXCLUDED.%s, v = 0' % ((table.unique[0][0],) * 2)])
                text += ' ON CONFLICT (%s) DO UPDATE SET %s' % (', '.join(target), changes)
                if rnd.random() < 0.3:
                    text += ' WHERE %s.v %s %s' % (table.name, rnd.choice(['<', '>']), self.num())
        return text + self.returning(table)

    def update(self):
        rnd = self.rnd
        table = self.table()
        where = self.where(table, False)
        column = rnd.choice(['v'] * 5 + table.columns)
        if column == 'v':
            changes = 'v = ' + rnd.choice(['v + %s' % self.num(), self.num(), 'NULL', 'v', '%s' % self.num(890, 902)])
        elif column in ('y', 't'):
            changes = '%s = %s' % (column, self.value(column))
        else:
            # a key that is in the way is so whatever row comes first
            changes = '%s = %s' % (column, rnd.choice([self.value(column)] * 2 + [
                '%s %% 100 + 100' % column, '%s %% 100' % column, column]))
            # of several rows one may have a duplicate key and another one violate the check
            changes += rnd.choice(['', ", v = v + 1"] if self.exact else [''])
        if rnd.random() < 0.1:
            other = rnd.choice([t for t in TABLES if t is not table])
            self.exact = False
            # each row at most once
            return 'UPDATE %s SET %s WHERE %s AND %s IN (SELECT v FROM %s)' % (
                table.name, changes, where, table.columns[0], other.name)
        return 'UPDATE %s SET %s WHERE %s%s' % (table.name, changes, where, self.returning(table))

    def delete(self):
        table = self.table()
        return 'DELETE FROM %s WHERE %s%s' % (table.name, self.where(table, self.rnd.random() < 0.1), self.returning(table))

    def again(self):
        """a key that goes and comes back in one statement, a row that changes and is read"""
        table = self.rnd.choice([A, A, B, H])
        where = self.by_key(table, table.key)
        one = ', '.join('1' if c == 'v' else c for c in table.columns)
        return self.rnd.choice([
            'WITH d AS (DELETE FROM {0} WHERE {1} RETURNING *) INSERT INTO {0} SELECT {2} FROM d RETURNING *',
            'WITH d AS (UPDATE {0} SET v = v + 1 WHERE {1} RETURNING *) SELECT * FROM d',
            'WITH d AS (UPDATE {0} SET v = v + 1 WHERE {1} RETURNING *) SELECT p.v, d.v FROM {0} p, d WHERE p.{3} = d.{3}',
            'WITH d AS (DELETE FROM {0} WHERE {1} RETURNING *) SELECT count(*), (SELECT count(*) FROM d) FROM {0}',
        ]).format(table.name, where, one, table.columns[0])

    def call(self):
        low = self.num()
        self.exact = False
        return self.rnd.choice([
            'SELECT put(%s, %s)' % (low, self.num()),
            'SELECT put(%s, %s), put(%s, %s)' % (low, self.num(), low, self.num()),
            'SELECT walk(%s, %s + %s, %s)' % (low, low, self.num(1, 8), self.num(0, 4)),
            'SELECT bump(%s)' % low,
            'SELECT id, bump(id), v FROM a WHERE id BETWEEN %s AND %s + 3' % (low, low),
            'SELECT id, bump(id), v FROM a WHERE id = %s FOR UPDATE' % low,
            'UPDATE a SET u = bump(id) WHERE id = %s' % low,
        ])

    def statement(self):
        kind = self.rnd.choices([self.select, self.insert, self.update, self.delete, self.again, self.call],
                                [9, 6, 7, 3, 2, 2])[0]
        return kind()

    def block(self):
        """in a block of PL/pgSQL that catches what happens"""
        text = "'%s'" % self.statement().replace("'", "''")
        if self.rnd.random() < 0.6:
            return 'SELECT attempt(%s)' % text
        self.exact = False
        return "SELECT undo(%s, '%s')" % (text, self.select().replace("'", "''"))


class Twin:
    def __init__(self, name, heap, settings):
        self.name, self.heap = name, heap
        self.connection = psycopg2.connect('dbname=' + (psycopg2.extensions.parse_dsn('').get('dbname') or 'postgres'))
        self.connection.autocommit = True
        self.run('DROP SCHEMA IF EXISTS %s CASCADE' % name)
        self.run('CREATE SCHEMA %s' % name)
        for setting in ['search_path = %s, public' % name, 'client_min_messages = error', 'jit = off'] + settings:
            self.run('SET ' + setting)
        self.run(FUNCTIONS)

    def run(self, text):
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(text)
                rows = cursor.fetchall() if cursor.description is not None else None
                if rows and ' ORDER BY ' not in text and not text.startswith('FETCH'):
                    rows.sort(key=repr)
                return ('ok', cursor.statusmessage, rows)
            except psycopg2.Error as error:
                if error.pgcode is None or error.pgcode.startswith(('57', '58', 'XX')):
                    print('not a statement\'s own error: %s\n%s' % (text, error))
                    sys.exit(2)
                return ('error', error.pgcode, error.diag.message_primary, error.diag.message_detail)

    def must(self, text):
        result = self.run(text)
        if result[0] != 'ok':
            print('%s\n  %s' % (text, result))
            sys.exit(2)
        return result

    def make_tables(self, triggers):
        for name in 'abnh':
            heap = self.heap or name == 'h'
            self.must('DROP %sTABLE IF EXISTS %s' % ('' if heap else 'FOREIGN ', name))
            columns = {'b': 'x int, y text COLLATE "C", v int, w int, PRIMARY KEY (x, y)', 'n': 'id int, v int'}.get(
                name, 'id int PRIMARY KEY, u int, v int, t text, CHECK (v < 900), CONSTRAINT {0}_u UNIQUE (u)'.format(name))
            self.must('CREATE %sTABLE %s (%s)%s' % ('' if heap else 'FOREIGN ', name, columns, '' if heap else ' SERVER mot_server'))
            if name in triggers:
                self.must(TRIGGERS.format(name))
        self.must('CREATE INDEX ON a (v); CREATE UNIQUE INDEX ON b (w, x); CREATE INDEX ON b (v DESC, y)')


class Run:
    def __init__(self, options):
        self.options = options
        self.rnd = random.Random(options.seed)
        prepared = ['plan_cache_mode = force_generic_plan']
        self.twins = [Twin('alone_heap', True, prepared),
                      Twin('alone_off', False, prepared + ['mot.jit = off']),
                      Twin('alone_on', False, prepared + ['mot.jit = on', 'mot.jit_prepare_above_executions = 0',
                                                          'mot.write_conflicts = abort'] + options.settings.split())]
        self.steps, self.failed, self.differences = [], 0, 0
        self.prepared, self.before = [], []
        self.done = collections.Counter()

    def period(self):
        rnd = self.rnd
        triggers = rnd.choice(['', '', 'a', 'ah'])
        for twin in self.twins:
            twin.must('DEALLOCATE ALL')
            twin.make_tables(triggers)
        self.prepared = []
        for i in range(40):
            maker = Maker(rnd, True)
            text = maker.statement()
            self.prepared.append((maker.ranges, maker.exact))
            types = '(%s)' % ', '.join('int' for _ in maker.ranges) if maker.ranges else ''
            for twin in self.twins:
                twin.must('PREPARE p%d%s AS %s' % (i, types, text))
        fill = ["INSERT INTO %s SELECT i, i + 3, i * 7 %% 20, 'f' FROM generate_series(1, 12) i" % name for name in 'ah']
        fill += ['INSERT INTO b SELECT i % 5, chr(97 + i / 5), i, i FROM generate_series(1, 12) i',
                 'INSERT INTO n SELECT i, i % 4 FROM generate_series(1, 12) i']
        for twin in self.twins:
            for text in fill:
                twin.must(text)
        self.compare()

    def difference(self, twin, result):
        self.differences += 1
        print('DIFFERENCE (seed %d): before the transaction' % self.options.seed)
        for rows in self.before:
            print('  ', rows)
        for text, _, expected in self.steps:
            print('  %s;\n      %s' % (text, str(expected)[:1000]))
        print('  but %s: %s' % (twin.name, str(result)[:2000]), flush=True)

    def do(self, text, exact=True):
        """on the heap twin"""
        if self.options.verbose:
            print(text, flush=True)
        result = self.twins[0].run(text)
        self.steps.append((text, exact, result))
        self.done[text.split()[0]] += 1
        if result[0] == 'error':
            self.failed += 1
            self.done[result[1]] += 1
            return False
        return True

    def replay(self):
        """what has been done, on the others; true if it was the same"""
        for twin in self.twins[1:]:
            done, self.steps = self.steps, []
            for step in done:
                text, exact, expected = step
                self.steps.append(step)
                result = twin.run(text)
                if result == expected or (not exact and result[:2] == expected[:2] and result[0] == 'error'):
                    if result[1] not in NEVER:
                        continue
                self.difference(twin, result)
                return False
        return True

    def compare(self):
        self.before = []
        for table in TABLES:
            text = 'SELECT * FROM %s ORDER BY %s' % (table.name, ', '.join(table.columns))
            expected = self.twins[0].must(text)
            self.before.append((table.name, expected[2]))
            for twin in self.twins[1:]:
                result = twin.run(text)
                if result != expected:
                    self.steps.append((text, True, expected))
                    self.difference(twin, result)
                    return False
        return True

    def statement(self):
        rnd = self.rnd
        r = rnd.random()
        if r < 0.55:
            i = rnd.randrange(len(self.prepared))
            ranges, exact = self.prepared[i]
            arguments = ', '.join(str(rnd.randint(*r)) for r in ranges)
            return self.do('EXECUTE p%d%s' % (i, '(%s)' % arguments if ranges else ''), exact)
        maker = Maker(rnd, False)
        text = maker.statement() if r < 0.85 else maker.block()
        return self.do(text, maker.exact)

    def cursor(self, cursors, depth):
        """opens a cursor, goes on in one, or closes one"""
        rnd = self.rnd
        name = 'c%d' % rnd.randrange(3)
        if name not in cursors:
            maker = Maker(rnd, False)
            table = maker.table()
            lock = rnd.choice(['', '', ' FOR UPDATE', ' FOR SHARE'])
            scroll = rnd.choice(['', 'NO SCROLL ', 'SCROLL ']) if not lock else ''
            hold = ' WITH HOLD' if not lock and rnd.random() < 0.2 else ''
            order = maker.order(table)
            text = 'DECLARE %s %sCURSOR%s FOR SELECT * FROM %s WHERE %s%s%s' % (
                name, scroll, hold, table.name, maker.where(table, True), order, lock)
            if not self.do(text):
                return False
            cursors[name] = (depth, table.name if lock == ' FOR UPDATE' else None, scroll == 'SCROLL ', hold)
            return True
        _, updatable, scroll, _ = cursors[name]
        r = rnd.random()
        if r < 0.1:
            del cursors[name]
            return self.do('CLOSE ' + name)
        if updatable and r < 0.5:
            if not self.do('FETCH ' + name):
                return False
            return self.do(rnd.choice(['DELETE FROM %s', 'UPDATE %s SET v = v + 1']) % updatable + ' WHERE CURRENT OF ' + name)
        ways = ['NEXT', '2', '3', 'ALL'] + (['PRIOR', 'BACKWARD 2', 'FIRST', 'LAST', 'ABSOLUTE 2'] if scroll else [])
        return self.do('FETCH %s FROM %s' % (rnd.choice(ways), name))

    def savepoint(self, savepoints, cursors, back):
        """sets one, releases one, or (back) rolls back to one"""
        rnd = self.rnd
        if not back and (not savepoints or rnd.random() < 0.6):
            name = 's%d' % rnd.randrange(3)
            savepoints.append(name)
            return self.do('SAVEPOINT ' + name)
        name = savepoints[-1] if rnd.random() < 0.7 else rnd.choice(savepoints)
        place = len(savepoints) - 1 - savepoints[::-1].index(name)
        if back or rnd.random() < 0.5:
            del savepoints[place + 1:]
            for cursor in [c for c in cursors if cursors[c][0] > place]:
                del cursors[cursor]
            return self.do('ROLLBACK TO ' + name)
        del savepoints[place:]
        for cursor in cursors:
            cursors[cursor] = (min(cursors[cursor][0], place),) + cursors[cursor][1:]
        return self.do('RELEASE ' + name)

    def transaction(self, chained):
        """true if the next one is under way"""
        rnd = self.rnd
        savepoints, cursors = [], {}
        if not chained:
            level = rnd.choice(['READ COMMITTED'] + ['REPEATABLE READ'] * 2 + ['SERIALIZABLE'] * 4)
            self.done[level] += 1
            self.do('BEGIN ISOLATION LEVEL %s%s' % (level, ' READ ONLY' if rnd.random() < 0.04 else ''))
        for _ in range(rnd.randint(1, rnd.choice([4, 12, 25]))):
            r = rnd.random()
            if r < 0.17:
                good = self.savepoint(savepoints, cursors, False)
            elif r < 0.27:
                good = self.cursor(cursors, len(savepoints))
            else:
                if not savepoints and rnd.random() < 0.3:
                    savepoints.append('s9')
                    self.do('SAVEPOINT s9')
                good = self.statement()
            if not good:
                if not savepoints or rnd.random() < 0.05:
                    break
                self.savepoint(savepoints, cursors, True)
        end = rnd.choice(['COMMIT'] * 4 + ['ROLLBACK']) + (' AND CHAIN' if rnd.random() < 0.1 else '')
        committed = self.do(end) and self.steps[-1][2][1] == 'COMMIT'
        if committed and not end.endswith('CHAIN'):
            for name in [c for c in cursors if cursors[c][3]]:
                self.do('FETCH ALL FROM ' + name)
        if not end.endswith('CHAIN'):
            self.do('CLOSE ALL')
        return end.endswith('CHAIN')

    def sound(self):
        """what the tables' own verification says"""
        for twin in self.twins[1:]:
            for name in 'abn':
                result = twin.must("SELECT * FROM mot_verify('%s') WHERE problems <> 0" % name)
                if result[2]:
                    self.difference(twin, result)

    def everything(self):
        print('# seed %d' % self.options.seed, flush=True)
        n, left, chained = 0, 0, False
        while n < self.options.transactions and self.differences < 5:
            if left == 0:
                self.period()
                left = PERIOD
            self.steps = []
            chained = self.transaction(chained)
            n += 1
            left -= 1
            if not self.replay() or not self.compare() or left == 0:
                for twin in self.twins:
                    twin.run('ROLLBACK')
                    twin.run('CLOSE ALL')
                if left == 0:
                    self.sound()
                left, chained = 0, False
        for twin in self.twins:
            twin.run('ROLLBACK')
            twin.run('DROP SCHEMA %s CASCADE' % twin.name)
        print('# %d transactions, %d differences; on heap %d errors' % (n, self.differences, self.failed))
        print('# ' + ', '.join('%s %d' % item for item in self.done.most_common(40)))
        return 1 if self.differences else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randint(1, 10 ** 9))
    parser.add_argument('--transactions', type=int, default=1000)
    parser.add_argument('--settings', default='')
    parser.add_argument('--verbose', action='store_true')
    sys.exit(Run(parser.parse_args()).everything())


if __name__ == '__main__':
    main()
