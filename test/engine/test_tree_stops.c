/*-------------------------------------------------------------------------
 *
 * test_tree_stops.c
 *	  Interleavings of the Masstree, made with stop points: one thread is
 *	  stopped in the middle of something, others meet what it left.
 *
 * Needs a library with stop points: EXTRA_CFLAGS=-DMOT_STOP_POINTS.
 *
 *-------------------------------------------------------------------------
 */
#include "test_tree.h"

#ifdef MOT_STOP_POINTS

#include <pthread.h>

#define REGION_BYTES ((size_t) 64 << 20)

static fixture f;

/* --------------------------------------------------------------- stopping */

typedef struct actor
{
	/* what it does */
	void		(*act) (struct actor *self);
	char		key[100];
	size_t		len;
	uint64_t	value;
	/* where it stops, if it does, and how often it passes there before */
	const char *stop_at;
	int			passes;
	/* what came of it */
	uint64_t	found;
	mot_tree_status status;
	int			keys_seen;
	bool		in_order;

	mot_tree_context ctx;
	pthread_t	thread;
	atomic_int state;			/* RUNNING, ... */
} actor;

enum
{
	RUNNING, STOPPED, RELEASED, DONE
};

static _Thread_local actor *myself;
static int	passes_before;		/* of the actor that is started next */

static void
stop_here(const char *name)
{
	actor	   *a = myself;

	if (a == NULL || a->stop_at == NULL || strcmp(a->stop_at, name) != 0)
		return;
	if (a->passes-- > 0)
		return;
	a->stop_at = NULL;
	atomic_store(&a->state, STOPPED);
	while (atomic_load(&a->state) != RELEASED)
		usleep(100);
}

static void *
run_actor(void *arg)
{
	myself = arg;
	myself->act(myself);
	atomic_store(&myself->state, DONE);
	return NULL;
}

/* begin, and wait until it stops (or is done, if it does not) */
static void
actor_start(actor *a, unsigned number, const char *stop_at, void (*act) (actor *self),
			const char *key, size_t len, uint64_t value)
{
	a->act = act;
	a->stop_at = stop_at;
	a->passes = passes_before;
	passes_before = 0;
	memcpy(a->key, key, len);
	a->len = len;
	a->value = value;
	a->found = 0;
	a->ctx = f.ctx;
	a->ctx.cache = mot_region_cache(f.region, number);
	atomic_store(&a->state, RUNNING);
	REQUIRE(pthread_create(&a->thread, NULL, run_actor, a) == 0);
	while (stop_at && atomic_load(&a->state) == RUNNING)
		usleep(100);
}

static void
actor_finish(actor *a)
{
	if (atomic_load(&a->state) == STOPPED)
		atomic_store(&a->state, RELEASED);
	pthread_join(a->thread, NULL);
}

/* is it waiting for somebody? */
static bool
actor_waits(actor *a)
{
	usleep(20000);
	return atomic_load(&a->state) == RUNNING;
}

static void
act_get(actor *a)
{
	a->found = mot_tree_get(f.tree, a->key, a->len, NULL);
}

static void
act_insert(actor *a)
{
	a->status = mot_tree_cas(f.tree, &a->ctx, a->key, a->len, 0, a->value, &a->found,
							 MOT_FOR_CHANGE, NULL);
}

static void
act_remove(actor *a)
{
	a->status = mot_tree_change(f.tree, &a->ctx, a->key, a->len, answer_zero, NULL, NULL, NULL);
}

/* values are numbers in the order of the keys; "value" says: backward */
static void
act_scan(actor *a)
{
	mot_tree_cursor c;
	uint64_t	value;
	uint64_t	last = 0;

	a->keys_seen = 0;
	a->in_order = true;
	REQUIRE(mot_tree_cursor_open(&c, f.tree, NULL, NULL, a->value != 0, NULL));
	while ((value = mot_tree_cursor_next(&c, NULL, NULL)) != 0)
	{
		if (a->keys_seen++ > 0 && (a->value ? value >= last : value <= last))
			a->in_order = false;
		last = value;
	}
	mot_tree_cursor_close(&c);
}

/* two threads never retire at the same time here */
static void
begin(void)
{
	fixture_begin(&f, REGION_BYTES, 8);
	mot_stop_point_handler = stop_here;
}

static void
end(void)
{
	mot_stop_point_handler = NULL;
	CHECK(tree_is_sound(f.tree));
	fixture_end(&f);
}

/* keys prefix00, prefix02, ...; values are the numbers plus one */
static void
fill(const char *prefix, int from, int to, int step)
{
	char		key[100];

	for (int i = from; i < to; i += step)
	{
		int			len = sprintf(key, "%s%03d", prefix, i);

		CHECK(tree_insert(&f, key, (size_t) len, (uint64_t) i + 1, NULL) == MOT_TREE_OK);
	}
}

static void
empty(const char *prefix, int from, int to, int step)
{
	char		key[100];

	for (int i = from; i < to; i += step)
	{
		int			len = sprintf(key, "%s%03d", prefix, i);

		CHECK(tree_remove(&f, key, (size_t) len) == MOT_TREE_OK);
	}
}

static const mot_node *observed_node;
static uint64_t observed_version;

static void
observe(void *arg, const mot_node *node, uint64_t version)
{
	(void) arg;
	observed_node = node;
	observed_version = version;
}

static const mot_observer observer = {observe, NULL, NULL};

/* ------------------------------------------------------------------- tests */

/* a lock without dirty bits changes nothing for others; dirty bits do */
static void
versions_of_locked_nodes(void)
{
	actor		writer;

	for (int dirty = 0; dirty < 3; dirty++)
	{
		static const char *const point[] = {"tree-split-locked", "tree-split-added", "tree-insert-marked"};

		begin();
		fill("", 0, dirty == 2 ? 28 : 30, 2);
		CHECK(mot_tree_get(f.tree, "004", 3, &observer) == 5);
		actor_start(&writer, 1, point[dirty], act_insert, "005", 3, 6);
		CHECK(atomic_load(&writer.state) == STOPPED);
		if (dirty)
			CHECK(mot_node_version(observed_node) != observed_version);
		else
		{
			CHECK(mot_node_version(observed_node) == observed_version);
			CHECK(mot_tree_get(f.tree, "004", 3, NULL) == 5);
			CHECK(mot_tree_get(f.tree, "005", 3, NULL) == 0);
		}
		actor_finish(&writer);
		CHECK(writer.status == MOT_TREE_OK);
		CHECK(mot_node_version(observed_node) != observed_version);
		CHECK(mot_tree_get(f.tree, "005", 3, NULL) == 6);
		end();
	}
}

/* readers and writers wait for a node that splits, and find what was in it */
static void
split_in_the_way(void)
{
	static const char *const found[] = {"000", "014", "028"};
	actor		writer;
	actor		other;

	for (int i = 0; i < 3; i++)
		for (int insert = 0; insert < 2; insert++)
		{
			begin();
			fill("", 0, 30, 2);
			actor_start(&writer, 1, "tree-split-added", act_insert, "015", 3, 16);
			CHECK(atomic_load(&writer.state) == STOPPED);
			actor_start(&other, 2, NULL, insert ? act_insert : act_get, found[i], 3, 99);
			CHECK(actor_waits(&other));
			actor_finish(&writer);
			actor_finish(&other);
			CHECK(other.found == (uint64_t) atoi(found[i]) + 1);
			if (insert)
				CHECK(other.status == MOT_TREE_MISMATCH);
			end();
		}
}

/* a reader that has read a node which then splits, or loses the key */
static void
reader_overtaken(void)
{
	actor		reader;

	begin();
	fill("", 0, 30, 2);
	actor_start(&reader, 1, "tree-get-read", act_get, "028", 3, 0);
	fill("", 1, 30, 2);
	actor_finish(&reader);
	CHECK(reader.found == 29);

	/* an absent key that comes: the reader may say either, but looks again */
	actor_start(&reader, 1, "tree-get-read", act_get, "0285", 4, 0);
	CHECK(tree_insert(&f, "0285", 4, 77, NULL) == MOT_TREE_OK);
	actor_finish(&reader);
	CHECK(reader.found == 77);

	/* all of it goes: no reader trips over nodes that were deleted */
	actor_start(&reader, 1, "tree-get-read", act_get, "029", 3, 0);
	CHECK(tree_remove(&f, "0285", 4) == MOT_TREE_OK);
	empty("", 0, 30, 1);
	actor_finish(&reader);
	CHECK(reader.found == 0 || reader.found == 30);
	end();

	/* on its way into a layer that disappears, and comes back */
	for (int again = 0; again < 2; again++)
	{
		begin();
		fill("longprefix", 0, 40, 1);
		actor_start(&reader, 1, "tree-get-read", act_get, "longprefix007", 13, 0);
		empty("longprefix", 0, 40, 1);
		if (again)
			fill("longprefix", 5, 10, 1);
		actor_finish(&reader);
		CHECK(reader.found == (again ? 8 : 0));
		end();
	}
}

/* a node is marked deleted, and still in its parent: others wait and go on */
static void
deletion_in_the_way(void)
{
	actor		remover;
	actor		other;
	char		key[16];

	begin();
	fill("", 0, 200, 1);
	/* all but one key of the second node, whichever keys these are */
	CHECK(mot_tree_get(f.tree, "020", 3, &observer) == 21);
	{
		const mot_node *node = observed_node;
		int			last = -1;

		for (int i = 1; i < 200; i++)
		{
			sprintf(key, "%03d", i);
			CHECK(mot_tree_get(f.tree, key, 3, &observer) == (uint64_t) i + 1);
			if (observed_node != node)
				continue;
			if (last >= 0)
				empty("", last, last + 1, 1);
			last = i;
		}
		sprintf(key, "%03d", last);
		actor_start(&remover, 1, "tree-remove-marked", act_remove, key, 3, 0);
		CHECK(atomic_load(&remover.state) == STOPPED);
		CHECK(mot_node_version(node) != observed_version);
		actor_start(&other, 2, NULL, act_insert, key, 3, 5);
		CHECK(actor_waits(&other));
		actor_finish(&remover);
		actor_finish(&other);
		CHECK(remover.status == MOT_TREE_OK && other.status == MOT_TREE_OK);
		CHECK(mot_tree_get(f.tree, key, 3, NULL) == 5);
		CHECK(tree_remove(&f, key, 3) == MOT_TREE_OK);
	}
	end();
}

/* between finding a neighbour and locking it, that splits, or is deleted */
static void
neighbour_moves(void)
{
	for (int gone = 0; gone < 2; gone++)
	{
		actor		remover;
		actor		scanner;

		begin();
		fill("", 0, 150, 1);	/* in sequence: 15 in each node */
		empty("", 31, 45, 1);
		actor_start(&remover, 1, "tree-left-read", act_remove, "030", 3, 0);
		CHECK(atomic_load(&remover.state) == STOPPED);
		if (gone)
			empty("", 15, 30, 1);
		else
			CHECK(tree_insert(&f, "0225", 4, 500, NULL) == MOT_TREE_OK);
		actor_finish(&remover);
		CHECK(remover.status == MOT_TREE_OK);
		CHECK(tree_is_sound(f.tree));
		CHECK(mot_tree_get(f.tree, "0225", 4, NULL) == (gone ? 0 : 500));
		actor_start(&scanner, 1, NULL, act_scan, "", 0, 1);
		actor_finish(&scanner);
		CHECK(scanner.keys_seen == (gone ? 120 : 136));
		end();
	}
}

/* between finding a parent and locking it, that splits, or gets another above it */
static void
parent_moves(void)
{
	for (int child = 0; child < 31; child += 10)
		for (int removing = 0; removing < 2; removing++)
		{
			actor		other;
			char		key[16];
			int			nodes = 31; /* of 15 keys: the parent, and root, is
									 * full */

			begin();
			fill("", 0, nodes * 15, 1);
			if (removing)
			{
				empty("", child * 15 + 1, child * 15 + 15, 1);
				sprintf(key, "%03d", child * 15);
			}
			else
				sprintf(key, "%03d5", child * 15);
			if (removing && child == 0)
			{
				/* the leftmost node stays */
				end();
				continue;
			}
			actor_start(&other, 1, "tree-parent-read", removing ? act_remove : act_insert, key, strlen(key), 900);
			CHECK(atomic_load(&other.state) == STOPPED);
			CHECK(tree_insert(&f, "0755", 4, 901, NULL) == MOT_TREE_OK);
			actor_finish(&other);
			CHECK(other.status == MOT_TREE_OK);
			CHECK(tree_is_sound(f.tree));
			CHECK(mot_tree_get(f.tree, key, strlen(key), NULL) == (removing ? 0 : 900));
			CHECK(mot_tree_get(f.tree, "0755", 4, NULL) == 901);
			end();
		}
}

/* scans pass a node that has left its siblings but not its parent */
static void
scan_past_deletion(void)
{
	for (int backward = 0; backward < 2; backward++)
	{
		actor		remover;
		actor		scanner;

		begin();
		fill("", 0, 30, 1);		/* in sequence: 15 in each node */
		fill("", 30, 60, 1);
		empty("", 15, 29, 1);
		actor_start(&remover, 1, "tree-remove-unlinked", act_remove, "029", 3, 0);
		CHECK(atomic_load(&remover.state) == STOPPED);
		actor_start(&scanner, 2, "never", act_scan, "", 0, (uint64_t) backward);
		CHECK(atomic_load(&scanner.state) == DONE);
		actor_finish(&scanner);
		CHECK(scanner.keys_seen == 45 && scanner.in_order);
		actor_finish(&remover);
		end();
	}
}

/* a scan stops with a copy of a node, which splits, goes, or loses a layer */
static void
scan_overtaken(void)
{
	for (int backward = 0; backward < 2; backward++)
	{
		actor		scanner;

		/* split */
		begin();
		fill("", 0, 60, 2);
		actor_start(&scanner, 1, "tree-cursor-copied", act_scan, "", 0, (uint64_t) backward);
		fill("", 1, 60, 2);
		actor_finish(&scanner);
		CHECK(scanner.keys_seen >= 30 && scanner.keys_seen <= 60 && scanner.in_order);
		end();

		/* gone: with it the rest of its keys, or not yet */
		begin();
		fill("", 0, 60, 1);
		actor_start(&scanner, 1, "tree-cursor-copied", act_scan, "", 0, (uint64_t) backward);
		empty("", 15, 59, 1);
		empty("", 0, 14, 1);
		actor_finish(&scanner);
		CHECK(scanner.keys_seen >= 2 && scanner.in_order);
		end();

		/* the layer it was about to enter has gone; what lies behind has not */
		begin();
		fill("", 0, 5, 1);
		fill("5 the same prefix ", 100, 140, 1);
		fill("6", 200, 205, 1);
		actor_start(&scanner, 1, "tree-cursor-copied", act_scan, "", 0, (uint64_t) backward);
		empty("5 the same prefix ", 100, 140, 1);
		actor_finish(&scanner);
		CHECK(scanner.keys_seen == 10 && scanner.in_order);
		end();
	}
}

/* an entry is becoming a link to a layer: nobody takes the one for the other */
static void
layer_in_the_way(void)
{
	actor		writer;
	actor		reader;

	begin();
	fill("common prefix of ", 0, 1, 1);
	actor_start(&writer, 1, "tree-layer-linked", act_insert, "common prefix of many", 21, 7);
	CHECK(atomic_load(&writer.state) == STOPPED);
	actor_start(&reader, 2, NULL, act_get, "common prefix of 000", 20, 0);
	CHECK(actor_waits(&reader));
	actor_finish(&writer);
	actor_finish(&reader);
	CHECK(reader.found == 1);
	CHECK(mot_tree_get(f.tree, "common prefix of many", 21, NULL) == 7);
	end();
}

/* a layer is going: who wants to put a key into it makes a new entry instead */
static void
insert_into_going_layer(void)
{
	actor		remover;
	actor		inserter;
	actor		reader;

	for (int size = 2; size <= 100; size += 49)
	{
		char		last[32];

		begin();
		fill("common prefix of ", 0, size, 1);
		empty("common prefix of ", 0, size - 1, 1);
		sprintf(last, "common prefix of %03d", size - 1);
		actor_start(&remover, 1, "tree-layer-marked", act_remove, last, 20, 0);
		CHECK(atomic_load(&remover.state) == STOPPED);
		actor_start(&inserter, 2, NULL, act_insert, "common prefix of all", 20, 7);
		actor_start(&reader, 3, NULL, act_get, "common prefix of 001", 20, 7);
		CHECK(actor_waits(&inserter));
		actor_finish(&remover);
		actor_finish(&inserter);
		actor_finish(&reader);
		CHECK(remover.status == MOT_TREE_OK && inserter.status == MOT_TREE_OK && reader.found == 0);
		CHECK(mot_tree_get(f.tree, "common prefix of all", 20, NULL) == 7);
		end();
	}
}

/*
 * Two removals empty a layer between them, and neither could remove it while
 * the other was at it: the last one does.
 */
static void
layer_emptied_by_two(void)
{
	static const char *const point[] = {"tree-remove-marked", "tree-remove-unlinked"};

	for (int p = 0; p < 2; p++)
		for (int nodes = 2; nodes <= 40; nodes += 19)
		{
			actor		first;
			tree_stat	stat;
			char		last[32];

			begin();
			/* in sequence: nodes of 15 keys */
			fill("eight by", 0, nodes * 15, 1);
			empty("eight by", 1, nodes * 15 - 1, 1);
			sprintf(last, "eight by%03d", nodes * 15 - 1);
			actor_start(&first, 1, point[p], act_remove, last, 11, 0);
			CHECK(atomic_load(&first.state) == STOPPED);
			empty("eight by", 0, 1, 1);
			actor_finish(&first);
			tree_stats(f.tree, &stat);
			CHECK(stat.keys == 0 && stat.layers == 1 && stat.border_nodes == 1);
			end();
		}
}

#define SKIPPED "a beginning that all of them have in common and that is skipped "

/* what parts from the skip, in its first slice, in the midst, in its last one; less and greater */
static const char *const aside[] = {
	"a beginninG", "a beginning that all of them", "a beginning that all of them have in common!", "a beginning that all of us",
	"a beginning that all of them have in common and that is skipped", SKIPPED
};

/*
 * a skip is being split: who goes through it waits, and finds what is below; so does who comes with
 * a key
 */
static void
skip_in_the_way(void)
{
	for (size_t i = 0; i < sizeof(aside) / sizeof(aside[0]); i++)
		for (int insert = 0; insert < 3; insert++)
		{
			actor		writer;
			actor		other;
			size_t		len = strlen(aside[i]);

			begin();
			fill(SKIPPED, 0, 40, 2);
			actor_start(&writer, 1, "tree-layer-linked", act_insert, aside[i], len, 99);
			CHECK(atomic_load(&writer.state) == STOPPED);
			if (insert < 2)
				actor_start(&other, 2, NULL, insert ? act_insert : act_get, SKIPPED "006",
							strlen(SKIPPED) + 3, 200);
			else
				actor_start(&other, 2, NULL, act_insert, aside[i], len, 201);
			CHECK(actor_waits(&other));
			actor_finish(&writer);
			actor_finish(&other);
			CHECK(writer.status == MOT_TREE_OK);
			CHECK(other.found == (insert < 2 ? 7 : 99));
			CHECK(insert == 0 || other.status == MOT_TREE_MISMATCH);
			CHECK(mot_tree_get(f.tree, aside[i], len, NULL) == 99);
			end();
		}
}

/* who has gone through a skip, or is about to, when it is split, once or often */
static void
skip_overtaken(void)
{
	for (int passes = 0; passes < 2; passes++)
		for (int what = 0; what < 4; what++)
			for (size_t times = 1; times <= 3; times++)
			{
				static const char *const point[] = {"tree-get-read", "tree-insert-located", "tree-cursor-copied", "tree-cursor-copied"};

				/*
				 * above the skip only who has no way through it is stopped
				 * with an insert
				 */
				const char *key = what == 1 && passes == 0 ? aside[3] : SKIPPED "017";
				actor		a;

				begin();
				fill(SKIPPED, 0, 40, 2);
				passes_before = what == 1 ? 0 : passes;
				actor_start(&a, 1, point[what], what == 0 ? act_get : what == 1 ? act_insert : act_scan,
							key, strlen(key), what == 1 ? 18 : what == 3);
				CHECK(atomic_load(&a.state) == STOPPED);
				for (size_t i = 0; i < times; i++)
					CHECK(tree_insert(&f, aside[i], strlen(aside[i]), 90 + i, NULL) == MOT_TREE_OK);
				if (what == 0)
					fill(SKIPPED, 17, 18, 1);
				actor_finish(&a);
				if (what == 0)
					CHECK(a.found == 18);
				else if (what == 1)
				{
					CHECK(a.status == MOT_TREE_OK);
					CHECK(mot_tree_get(f.tree, key, strlen(key), NULL) == 18);
				}
				else
					CHECK(a.keys_seen >= 20 && a.keys_seen <= 20 + (int) times);
				end();
			}
}

/*
 * The last key below a skip has gone, and before the layer goes, the skip is
 * split above it, once or often; or a key comes to the layer; or it is another
 * removal that takes the layer away, and it comes again.
 */
static void
skip_split_above_going_layer(void)
{
	for (int what = 0; what < 5; what++)
	{
		actor		remover;
		tree_stat	stat;
		uint64_t	left = 0;

		begin();
		fill(SKIPPED, 0, 2, 1);
		empty(SKIPPED, 0, 1, 1);
		actor_start(&remover, 1, "tree-layer-emptied", act_remove, SKIPPED "001", strlen(SKIPPED) + 3, 0);
		CHECK(atomic_load(&remover.state) == STOPPED);
		if (what < 3)
			for (; left < (what == 0 ? 1 : 4); left++)
				CHECK(tree_insert(&f, aside[left], strlen(aside[left]), 90 + left, NULL) == MOT_TREE_OK);
		if (what == 2)
			for (; left > 0; left--)
				CHECK(tree_remove(&f, aside[left - 1], strlen(aside[left - 1])) == MOT_TREE_OK);
		if (what >= 3)
		{
			fill(SKIPPED, 5, 6, 1);
			left++;
		}
		if (what == 4)
		{
			empty(SKIPPED, 5, 6, 1);
			CHECK(tree_insert(&f, SKIPPED "4", strlen(SKIPPED) + 1, 95, NULL) == MOT_TREE_OK);
			CHECK(tree_insert(&f, SKIPPED "and behind", strlen(SKIPPED) + 10, 96, NULL) == MOT_TREE_OK);
			left = 2;
		}
		actor_finish(&remover);
		CHECK(remover.status == MOT_TREE_OK);
		tree_stats(f.tree, &stat);
		CHECK(stat.keys == left);
		if (left == 0)
			CHECK(stat.layers == 1 && stat.border_nodes == 1);
		for (uint64_t i = 0; i < left && what < 3; i++)
			CHECK(mot_tree_get(f.tree, aside[i], strlen(aside[i]), NULL) == 90 + i);
		if (what == 3)
			CHECK(mot_tree_get(f.tree, SKIPPED "005", strlen(SKIPPED) + 3, NULL) == 6);
		end();
	}
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(versions_of_locked_nodes);
	RUN(split_in_the_way);
	RUN(reader_overtaken);
	RUN(deletion_in_the_way);
	RUN(neighbour_moves);
	RUN(parent_moves);
	RUN(scan_past_deletion);
	RUN(scan_overtaken);
	RUN(layer_in_the_way);
	RUN(insert_into_going_layer);
	RUN(layer_emptied_by_two);
	RUN(skip_in_the_way);
	RUN(skip_overtaken);
	RUN(skip_split_above_going_layer);
	return test_end();
}

#else

int
main(int argc, char **argv)
{
	(void) argc;
	(void) argv;
	(void) test_begin;
	printf("1..0 # SKIP needs -DMOT_STOP_POINTS\n");
	return 0;
}

#endif
