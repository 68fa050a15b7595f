/*-------------------------------------------------------------------------
 *
 * txn_util.h
 *	  A small host for tests of the engine's transactions: a table of
 *	  (id, value) rows with a unique index on id and one on value that is not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TXN_UTIL_H
#define MOT_TXN_UTIL_H

#include "internal.h"
#include "test.h"

typedef struct record
{
	uint64_t	id;
	int64_t		value;
	uint8_t		filler[32];
} record;

typedef struct store
{
	mot_engine *engine;
	mot_table  *table;
	mot_index_handle by_id;
	mot_index_handle by_value;
	bool		has_value_index;
} store;

static inline void
put_key(uint8_t *key, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		key[i] = (uint8_t) (n >> (56 - 8 * i));
}

static inline bool
id_matches(void *arg, const mot_version *version, const void *key, size_t len)
{
	uint8_t		mine[8];

	(void) arg;
	put_key(mine, ((const record *) mot_version_data(version))->id);
	return len == 8 && memcmp(mine, key, 8) == 0;
}

static inline bool
value_matches(void *arg, const mot_version *version, const void *key, size_t len)
{
	uint8_t		mine[8];

	(void) arg;
	put_key(mine, (uint64_t) ((const record *) mot_version_data(version))->value);
	return len == 8 && memcmp(mine, key, 8) == 0;
}

/* what reclamation asks for: indexes 1 (of a hundred) are by id, others by value */
static inline bool
record_key(const mot_index *index, const mot_version *version, void *key, size_t *len, unsigned *flags)
{
	const record *r = mot_version_data(version);

	put_key(key, mot_index_host_id(index) % 100 == 1 ? r->id : (uint64_t) r->value);
	*len = 8;
	*flags = 0;
	return true;
}

static inline mot_session *
open_session(mot_engine *engine, unsigned slot)
{
	mot_session *s;

	REQUIRE(mot_session_open(engine, slot, &s) == MOT_OK);
	return s;
}

/* the table and its indexes, in an empty engine */
static inline void
store_tables(store *st, bool value_index)
{
	mot_session *s = open_session(st->engine, 0);

	mot_index_key_hook = record_key;
	REQUIRE(mot_table_create(s, 1, 100, &st->table) == MOT_OK);
	REQUIRE(mot_index_create(s, st->table, 101, MOT_INDEX_UNIQUE | MOT_INDEX_DERIVED,
							 &st->by_id.index) == MOT_OK);
	mot_index_attach(st->by_id.index);
	mot_index_described(st->by_id.index);
	st->by_id.matches = id_matches;
	st->by_id.exact = true;
	st->has_value_index = value_index;
	if (value_index)
	{
		REQUIRE(mot_index_create(s, st->table, 102, MOT_INDEX_DERIVED, &st->by_value.index) == MOT_OK);
		mot_index_attach(st->by_value.index);
		mot_index_described(st->by_value.index);
		st->by_value.matches = value_matches;
	}
	(void) mot_table_publish(st->engine, st->table);
	mot_session_close(s);
}

static inline void
store_create(store *st, size_t memory, unsigned slots, unsigned flags, bool value_index)
{
	char		err[200];

	memset(st, 0, sizeof(*st));
	st->engine = mot_engine_create(memory, slots, flags, err, sizeof(err));
	REQUIRE(st->engine != NULL);
	store_tables(st, value_index);
}

/* a statement: its view; end_view lets go of the snapshot */
static inline mot_view
begin_view(mot_session *s, uint32_t command)
{
	mot_view	v = {mot_snapshot_take(s), command, NULL, false};

	return v;
}

static inline void
end_view(mot_session *s)
{
	mot_snapshot_hold(s, MOT_TS_NONE);
}

static inline const record *
get(store *st, mot_session *s, const mot_view *view, uint64_t id, mot_row **row, const mot_version **version)
{
	uint8_t		key[8];
	mot_row    *r;
	const mot_version *v;

	put_key(key, id);
	if (mot_index_get(s, view, &st->by_id, key, 8, &r, &v) != MOT_OK)
	{
		r = NULL;
		v = NULL;
	}
	if (row != NULL)
		*row = r;
	if (version != NULL)
		*version = v;
	return v != NULL ? mot_version_data(v) : NULL;
}

/* insert; on failure everything since is rolled back */
static inline mot_status
insert(store *st, mot_session *s, uint32_t command, uint64_t id, int64_t value)
{
	mot_mark	mark = mot_txn_mark(s);
	mot_row    *row,
			   *other;
	void	   *data;
	uint8_t		key[8];
	mot_status	status;

	put_key(key, id);
	if (mot_table_placed_by(st->table) != 0)
		mot_row_place(s, st->table, key, 8);
	status = mot_row_insert(s, st->table, command, 5, sizeof(record), &row, &data);
	if (status != MOT_OK)
		return status;
	memset(data, 0, sizeof(record));
	((record *) data)->id = id;
	((record *) data)->value = value;
	status = mot_index_add(s, &st->by_id, row, key, 8, 0, &other);
	if (status == MOT_OK && st->has_value_index)
	{
		put_key(key, (uint64_t) value);
		status = mot_index_add(s, &st->by_value, row, key, 8, 0, &other);
	}
	if (status != MOT_OK)
		mot_txn_rollback_to(s, mark);
	return status;
}

/*
 * update by id to (new_id, value); MOT_CHANGED is accepted (the new value does not depend on the
 * old)
 */
static inline mot_status
update_row(store *st, mot_session *s, const mot_view *view, uint32_t command,
		   mot_row *row, const mot_version *seen, uint64_t new_id, int64_t value)
{
	mot_mark	mark = mot_txn_mark(s);
	const mot_version *newest;
	record		old;
	uint8_t		key[8];
	void	   *data;
	mot_row    *other;
	bool		id_change,
				value_change;
	mot_status	status = mot_row_lock(s, view, st->table, row, seen, MOT_MODE_CHANGE, &newest);

	if (status != MOT_OK && status != MOT_CHANGED)
		return status;
	old = *(const record *) mot_version_data(newest);
	id_change = old.id != new_id;
	value_change = st->has_value_index && old.value != value;
	status = mot_row_update(s, st->table, row, command, 5, sizeof(record),
							id_change || value_change, &data);
	if (status != MOT_OK)
	{
		mot_txn_rollback_to(s, mark);
		return status;
	}
	memset(data, 0, sizeof(record));
	((record *) data)->id = new_id;
	((record *) data)->value = value;
	if (id_change)
	{
		put_key(key, old.id);
		status = mot_index_drop_entry(s, &st->by_id, row, key, 8, 0);
		put_key(key, new_id);
		if (status == MOT_OK)
			status = mot_index_add(s, &st->by_id, row, key, 8, 0, &other);
	}
	if (status == MOT_OK && value_change)
	{
		put_key(key, (uint64_t) old.value);
		if (mot_index_is_behind(st->by_value.index))
			status = mot_index_catch_up(s, &st->by_value, row, key, 8, 0, false, &other);
		if (status == MOT_OK)
			status = mot_index_drop_entry(s, &st->by_value, row, key, 8, 0);
		put_key(key, (uint64_t) value);
		if (status == MOT_OK)
			status = mot_index_add(s, &st->by_value, row, key, 8, 0, &other);
	}
	if (status != MOT_OK)
		mot_txn_rollback_to(s, mark);
	return status;
}

static inline mot_status
update(store *st, mot_session *s, const mot_view *view, uint32_t command,
	   uint64_t id, int64_t value)
{
	mot_row    *row;
	const mot_version *seen;

	if (get(st, s, view, id, &row, &seen) == NULL)
		return MOT_NOT_FOUND;
	return update_row(st, s, view, command, row, seen, id, value);
}

/* do deleted rows? */
static inline bool
leaves_by_itself(const mot_index_handle *handle)
{
	return (handle->index->flags & MOT_INDEX_DERIVED) != 0;
}

static inline mot_status
delete_id(store *st, mot_session *s, const mot_view *view, uint32_t command, uint64_t id)
{
	mot_mark	mark = mot_txn_mark(s);
	mot_row    *row;
	const mot_version *seen,
			   *newest;
	record		old;
	uint8_t		key[8];
	mot_status	status;

	if (get(st, s, view, id, &row, &seen) == NULL)
		return MOT_NOT_FOUND;
	status = mot_row_lock(s, view, st->table, row, seen, MOT_MODE_CHANGE, &newest);
	if (status != MOT_OK && status != MOT_CHANGED)
		return status;
	old = *(const record *) mot_version_data(newest);
	status = mot_row_delete(s, st->table, row, command);
	put_key(key, old.id);
	if (status == MOT_OK && !leaves_by_itself(&st->by_id))
		status = mot_index_drop_entry(s, &st->by_id, row, key, 8, 0);
	if (status == MOT_OK && st->has_value_index && !leaves_by_itself(&st->by_value))
	{
		put_key(key, (uint64_t) old.value);
		status = mot_index_drop_entry(s, &st->by_value, row, key, 8, 0);
	}
	if (status != MOT_OK)
		mot_txn_rollback_to(s, mark);
	return status;
}

/* sums over all rows: by the sequential scan, by id, or by value */
static inline int64_t
sum_scan(store *st, mot_session *s, const mot_view *view, uint64_t *rows)
{
	mot_scan	scan;
	mot_row    *row;
	const mot_version *v;
	int64_t		sum = 0;

	*rows = 0;
	mot_scan_begin(s, &scan, st->table, view);
	while (mot_scan_next(s, &scan, &row, &v))
	{
		sum += ((const record *) mot_version_data(v))->value;
		(*rows)++;
	}
	return sum;
}

static inline int64_t
sum_index(mot_session *s, const mot_view *view, const mot_index_handle *handle,
		  bool backward, uint64_t *rows)
{
	mot_cursor *c = malloc(mot_cursor_size());
	mot_row    *row;
	const mot_version *v;
	int64_t		sum = 0;

	*rows = 0;
	REQUIRE(mot_cursor_open(s, c, view, handle, NULL, NULL, backward) == MOT_OK);
	while (mot_cursor_next(c, &row, &v))
	{
		sum += ((const record *) mot_version_data(v))->value;
		(*rows)++;
	}
	mot_cursor_close(c);
	free(c);
	return sum;
}

static inline void
put_place(mot_table_place *place, uint64_t low, unsigned node)
{
	place->low = low;
	place->node = (uint16_t) node;
}

/* a READ COMMITTED transaction, by itself and as one change */
static inline void
begin(mot_session *s)
{
	mot_view	v = begin_view(s, 1);

	mot_txn_begin(s, MOT_READ_COMMITTED, v.snapshot, 7);
}

static inline void
commit(mot_session *s)
{
	REQUIRE(mot_txn_prepare(s) == MOT_OK);
	(void) mot_txn_commit(s);
	end_view(s);
}

static inline void
change(store *st, mot_session *s, uint64_t id, int64_t value)
{
	mot_view	v;

	begin(s);
	v = begin_view(s, 1);
	CHECK(update(st, s, &v, 1, id, value) == MOT_OK);
	commit(s);
}

/* everything owed is paid when nobody holds a snapshot */
static inline void
drain(store *st, mot_session *s)
{
	(void) st;
	for (int i = 0; i < 8 && mot_reclaim_all(s) != 0; i++)
		;
}

#endif							/* MOT_TXN_UTIL_H */
