#!/usr/bin/python3
"""snapshots.py: DDL in transactions with old snapshots, on twins of a table.

    snapshots.py [--seeds FIRST:LAST] [--steps N]   (the connection is libpq's)

One random story is told to a heap table and to its memory-optimized twin at the
same time, step by step, and each answer must be the same: rows, or SQLSTATE.
Three sessions are in it:

    ddl     transactions at a random level, whose snapshot is taken from another
            table first; in them DDL of all kinds, rows of its own, savepoints,
            cursors, and looks at the table
    dml     changes rows, mostly each statement by itself
    old     transactions with a snapshot that look at the table some time later,
            by its indexes, too

Nobody waits for long: lock_timeout makes an error (55P03) of it.  After each
transaction with DDL everybody's view of the table is compared, and mot_verify
has to find nothing.

What is left out is what is different on purpose.  At REPEATABLE READ and above
a memory-optimized table tells of lost races with COMMIT, so before the rows are its
own the DDL's transaction changes only rows that it has made; and at SERIALIZABLE
what is read counts against changes by everybody, so it then reads the table only
when that is its own.  ADD COLUMN with a constant default is a rewriting command
here and none on heap, and REINDEX here locks out readers, too.
"""

import argparse
import random
import sys

import psycopg2

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
KINDS = ("heap", "mot")
LOOK = "SELECT * FROM t ORDER BY t::text COLLATE \"C\""
TYPES = ("int", "bigint", "numeric", "text", "varchar(20)")


class Session:
    """The same session with both twins."""

    def __init__(self, dsn):
        self.connections = {}
        for kind in KINDS:
            connection = psycopg2.connect(dsn, options="-c lock_timeout=5 -c client_min_messages=error "
                                          "-c search_path=%s,public" % kind)
            connection.autocommit = True
            self.connections[kind] = connection

    def run(self, sql):
        """What a statement answers; the twins have to agree."""
        answers = {}
        for kind in KINDS:
            with self.connections[kind].cursor() as cursor:
                try:
                    cursor.execute(sql)
                    answers[kind] = cursor.fetchall() if cursor.description else cursor.rowcount
                except psycopg2.Error as error:
                    # of several rows that cannot be, either kind may be the first
                    answers[kind] = {"23505": "bad row", "23514": "bad row", "23502": "bad row"}.get(
                        error.pgcode, error.pgcode)
                    if error.pgcode is None:
                        raise
        return answers

    def close(self):
        for connection in self.connections.values():
            connection.close()


class Different(Exception):
    pass


class Story:
    def __init__(self, dsn, seed):
        self.random = random.Random(seed)
        self.told = []
        self.ddl, self.dml, self.old = (Session(dsn) for _ in range(3))
        self.names = {self.ddl: "ddl", self.dml: "dml", self.old: "old"}
        self.level = None       # of the DDL's transaction, if it is in one
        self.rewritten = False  # in this transaction: all rows are its own
        self.cursor = False
        self.old_open = False
        self.dml_open = False
        self.next_own = 1000

    def tell(self, session, sql):
        answers = session.run(sql)
        self.told.append("%s: %s -- %s" % (self.names[session], sql, str(answers["heap"])[:100]))
        if answers["heap"] != answers["mot"]:
            raise Different("heap: %s\nmot:  %s" % (answers["heap"], answers["mot"]))
        return answers["heap"]

    def failed(self, answer):
        return isinstance(answer, str)

    # ------------------------------------------------------------ the table

    def begin(self):
        for kind in KINDS:
            with self.ddl.connections[kind].cursor() as cursor:
                # (others, an autovacuum for one, may be in the way here)
                cursor.execute("SET lock_timeout = 0; DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s" % (kind, kind))
                cursor.execute("CREATE TABLE other (a int); CREATE DOMAIN d AS int; "
                               "CREATE TABLE p (id int, a int, b d) PARTITION BY RANGE (id)")
                cursor.execute("CREATE %s t (id int, a int, b d) %s" % (
                    ("TABLE", "") if kind == "heap" else ("FOREIGN TABLE", "SERVER mot_server")))
                cursor.execute("RESET lock_timeout")
        self.tell(self.ddl, "INSERT INTO t SELECT i, i % 7, i % 5 FROM generate_series(1, 12) i")

    # -------------------------------------------------------------- the parts

    def number(self):
        return self.random.randint(1, 20)

    def change(self):
        pick = self.random.choice
        column = pick(("id", "a", "b"))
        return pick((
            "INSERT INTO t (id, a, b) VALUES (%d, %d, %s)" % (self.number(), self.number(), pick(("NULL", "3"))),
            "INSERT INTO t (id, a, b) VALUES (%d, %s, %d)" % (self.number(), pick(("NULL", "4")), self.number()),
            "INSERT INTO t (id, a) VALUES (%d, 1) ON CONFLICT DO NOTHING" % self.number(),
            "UPDATE t SET %s = %d WHERE id::text = '%d'" % (column, self.number(), self.number()),
            "UPDATE t SET a = 5 WHERE a IS NULL",
            "UPDATE t SET b = 2 WHERE b IS NULL OR b::text > '3'",
            "DELETE FROM t WHERE id::text = '%d'" % self.number(),
            "DELETE FROM t WHERE %s IS NULL" % column,
            "DELETE FROM t WHERE id::text IN (SELECT id::text FROM t GROUP BY id HAVING count(*) > 1)",
        ))

    def definition(self):
        pick = self.random.choice
        column = pick(("id", "a", "b"))
        extra = pick(("x", "y"))
        name = pick(("k", "l"))
        rewriting = (
            "ALTER TABLE t ADD COLUMN %s int DEFAULT (random() * 0 + %d)::int" % (extra, self.number()),
            "ALTER TABLE t ADD COLUMN %s text GENERATED ALWAYS AS ('q' || 'r') STORED NOT NULL" % extra,
            "ALTER TABLE t ALTER a TYPE %s USING a::text::%s" % ((pick(TYPES),) * 2),
            "ALTER TABLE t ALTER a TYPE %s USING a::text::%s, ALTER id TYPE bigint" % ((pick(TYPES),) * 2),
        )
        other = (
            "ALTER TABLE t ADD COLUMN %s int" % extra,
            "ALTER TABLE t ADD COLUMN %s d" % extra,
            "ALTER TABLE t DROP COLUMN IF EXISTS %s" % extra,
            "ALTER TABLE t DROP COLUMN IF EXISTS %s" % extra,
            "ALTER TABLE t ALTER %s SET NOT NULL" % column,
            "ALTER TABLE t ALTER %s DROP NOT NULL" % column,
            "ALTER TABLE t ADD CONSTRAINT c CHECK (%s)" % pick((
                "length(id::text) < 2 OR b < 4", "a IS NOT NULL", "length(a::text) < 2")),
            "ALTER TABLE t ADD CONSTRAINT c CHECK (%s) NOT VALID" % pick((
                "length(id::text) < 2 OR b < 4", "a IS NOT NULL", "length(a::text) < 2")),
            "ALTER TABLE t VALIDATE CONSTRAINT c",
            "ALTER TABLE t DROP CONSTRAINT IF EXISTS c",
            "ALTER TABLE t ADD PRIMARY KEY (id)",
            "ALTER TABLE t DROP CONSTRAINT IF EXISTS t_pkey",
            "CREATE INDEX %s ON t (%s, b)" % (name, column),
            "CREATE UNIQUE INDEX %s ON t (%s)" % (name, column),
            "TRUNCATE t",
            "ALTER DOMAIN d ADD CONSTRAINT e CHECK (VALUE < %d)" % pick((4, 6, 15)),
            "ALTER DOMAIN d ADD CONSTRAINT e CHECK (VALUE < %d) NOT VALID" % pick((4, 6, 15)),
            "ALTER DOMAIN d VALIDATE CONSTRAINT e",
            "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS e",
            "ALTER DOMAIN d SET NOT NULL",
            "ALTER DOMAIN d DROP NOT NULL",
            "ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (%d)" % pick((10, 15, 100000)),
            "ALTER TABLE p ATTACH PARTITION t DEFAULT",
            "CREATE TABLE n PARTITION OF p FOR VALUES FROM (%d) TO (%d)" % pick(((0, 3), (3, 9), (2000, 3000))),
            "ALTER TABLE p DETACH PARTITION t",
            "DROP TABLE IF EXISTS n",
            "ANALYZE t",
        ) + (() if self.cursor else ("DROP INDEX IF EXISTS %s" % name,))
        if self.random.random() < 0.45:
            return pick(rewriting), True
        return pick(other), False

    def look(self):
        return self.random.choice((
            LOOK,
            "SELECT id, a, b FROM t WHERE id > 3 ORDER BY id, a, b",
            "SELECT id, a, b FROM t WHERE a::text = '5' ORDER BY id, a, b",
            "SELECT id, a, b FROM t WHERE a IS NULL ORDER BY id, b",
            "SELECT id, a, b FROM t ORDER BY a, b, id",
            "SELECT b, id FROM t WHERE b IN (1, 2, 3) ORDER BY b, id, a",
            "SELECT count(*), min(id), max(b), count(a) FROM t",
        ))

    # --------------------------------------------------------------- one step

    def step_ddl(self):
        chance = self.random.random()
        if self.level is None:
            self.level = self.random.choice(LEVELS)
            self.rewritten = self.cursor = False
            self.tell(self.ddl, "BEGIN ISOLATION LEVEL %s" % self.level)
            self.tell(self.ddl, "SET LOCAL enable_seqscan = %s" % self.random.choice(("on", "off")))
            self.tell(self.ddl, "SELECT count(*) FROM other")
        elif chance < 0.2:
            self.tell(self.ddl, "COMMIT" if self.random.random() < 0.75 else "ROLLBACK")
            self.level = None
            self.compare()
        else:
            self.tell(self.ddl, "SAVEPOINT a")
            answer = self.in_ddl()
            if self.failed(answer) or self.random.random() < 0.1:
                self.tell(self.ddl, "ROLLBACK TO a")
                return
            self.tell(self.ddl, "RELEASE a")

    def in_ddl(self):
        chance = self.random.random()
        may_read = self.level != "SERIALIZABLE" or self.rewritten
        if chance < 0.55:
            sql, rewrites = self.definition()
            answer = self.tell(self.ddl, sql)
            self.rewriting = rewrites and not self.failed(answer)
            return answer
        if chance < 0.65:
            self.next_own += 1
            return self.tell(self.ddl, "INSERT INTO t (id, a, b) VALUES (%d, 1, 1)" % self.next_own)
        if chance < 0.7 and may_read:
            return self.tell(self.ddl, "UPDATE t SET a = 2 WHERE id > 1000")
        if chance < 0.75 and self.rewritten:
            return self.tell(self.ddl, self.change())
        if chance < 0.8 and may_read and not self.cursor:
            self.tell(self.ddl, "DECLARE c CURSOR FOR " + self.look())
            answer = self.tell(self.ddl, "FETCH 2 FROM c")
            self.cursor = not self.failed(answer)
            return answer
        if self.cursor:
            self.cursor = False
            return self.tell(self.ddl, "CLOSE c")
        return self.tell(self.ddl, self.look() if may_read else "SELECT 1")

    def step_dml(self):
        if self.dml_open:
            if self.random.random() < 0.5:
                self.tell(self.dml, self.random.choice(("COMMIT", "ROLLBACK")))
                self.dml_open = False
                return
        elif self.random.random() < 0.06:
            self.tell(self.dml, "BEGIN")
            self.dml_open = True
        answer = self.tell(self.dml, self.change())
        if self.dml_open and self.failed(answer):
            self.tell(self.dml, "ROLLBACK")
            self.dml_open = False

    def step_old(self):
        if not self.old_open:
            self.tell(self.old, "BEGIN ISOLATION LEVEL " + self.random.choice(LEVELS[:2]))
            self.tell(self.old, "SET LOCAL enable_seqscan = %s" % self.random.choice(("on", "off")))
            self.tell(self.old, "SELECT count(*) FROM other")
            self.old_open = True
        elif self.random.random() < 0.35:
            self.tell(self.old, self.look())
            self.tell(self.old, self.look())
            self.tell(self.old, "COMMIT")
            self.old_open = False

    def compare(self):
        answer = self.tell(self.dml, LOOK)
        # (mot_verify keeps its lock until the end of the transaction)
        if not self.failed(answer) and not self.dml_open:
            with self.dml.connections["mot"].cursor() as cursor:
                cursor.execute("SELECT * FROM mot_verify('t') v WHERE problems > 0")
                problems = cursor.fetchall()
            if problems:
                raise Different("mot_verify: %s" % problems)

    def run(self, steps):
        self.begin()
        for _ in range(steps):
            chance = self.random.random()
            if chance < 0.5:
                self.rewriting = False
                told = len(self.told)
                self.step_ddl()
                # (unless it was taken back at once)
                self.rewritten |= self.rewriting and self.told[told:][-1].startswith("ddl: RELEASE")
            elif chance < 0.85:
                self.step_dml()
            else:
                self.step_old()
        for session in (self.dml, self.old, self.ddl):
            self.tell(session, "ROLLBACK")
        self.dml_open = False
        self.compare()

    def end(self):
        with self.ddl.connections["mot"].cursor() as cursor:
            cursor.execute("ROLLBACK")
            for session in (self.dml, self.old):
                for connection in session.connections.values():
                    connection.close()
            cursor.execute("SET lock_timeout = 0; DROP SCHEMA IF EXISTS mot CASCADE")
        for session in (self.dml, self.old, self.ddl):
            session.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", default="")
    parser.add_argument("--seeds", default="1:20")
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    first, last = (int(n) for n in args.seeds.split(":"))
    bad = 0
    for seed in range(first, last + 1):
        story = Story(args.dsn, seed)
        try:
            story.run(args.steps)
            print("ok %d - seed %d" % (seed - first + 1, seed))
        except Different as difference:
            bad += 1
            print("not ok %d - seed %d" % (seed - first + 1, seed))
            for line in story.told[-25:] + str(difference).split("\n"):
                print("# " + line)
        finally:
            story.end()
    print("1..%d" % (last - first + 1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
