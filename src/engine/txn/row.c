/*-------------------------------------------------------------------------
 *
 * row.c
 *	  Reading rows: which version a view sees.
 *
 * See internal.h for the shapes and for how a reader judges versions of
 * transactions in progress.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

void		(*mot_row_wait_hook) (void) = NULL;

/*
 * One step of waiting for a commit to be installed.  That is a matter of
 * instructions, unless its host has more to do between drawing and installing
 * (SERIALIZABLE, with changes outside the engine).
 */
static void
wait_for_install(unsigned *spins)
{
	if (*spins > INSTALL_SPINS && mot_row_wait_hook != NULL)
		mot_row_wait_hook();
	else
		mot_backoff(spins);
}

const void *
mot_version_data(const mot_version *v)
{
	return version_bytes(v);
}

unsigned
mot_version_host_bits(const mot_version *v)
{
	return (unsigned) (version_link(v) & LINK_BITS) >> LINK_HOST_SHIFT;
}

mot_ts
mot_version_ts(const mot_version *v)
{
	uint64_t	ts = version_ts(v);

	return ts & TS_UNCOMMITTED ? 0 : ts;
}

bool
mot_version_same(const mot_version *a, const mot_version *b)
{
	if (a == b || a == NULL || b == NULL)
		return a == b;
	return !(version_ts(a) & TS_UNCOMMITTED) && version_ts(a) == version_ts(b);
}

/*
 * Top of the row's chain as this transaction has it: its own newest version
 * (in the row if it holds the lock, in the journal if its lock is deferred),
 * or NULL if it has none.
 */
mot_version *
mot_own_newest(mot_session *s, mot_row *row, uint64_t head)
{
	if (head_owner(head) == s->self)
	{
		mot_version *v = head_version(head);

		if (v != NULL && (version_ts(v) & TS_UNCOMMITTED))
			return v;
		return NULL;
	}
	if (mot_unlikely(s->deferred_count != 0))
	{
		uint64_t	last = mot_map_get(&s->deferred, (uint64_t) (uintptr_t) row);

		if (last != 0)
			return (mot_version *) (uintptr_t) journal_at(s, last - 1)->b;
	}
	return NULL;
}

/*
 * The first committed version of a chain whose top may be another
 * transaction's, for a view; *retry if the top must be read again.
 */
static mot_version *
skip_uncommitted(mot_session *s, mot_row *row, uint64_t head, const mot_view *view, bool *retry)
{
	mot_version *v = head_version(head);
	mot_slot   *slot = &s->engine->slot[head_owner(head) - 1];
	uint64_t	state;

	*retry = false;

	/*
	 * We have read the clock (our snapshot) before, with acquire; a writer
	 * stores DRAWING before it adds to the clock, which releases it.  So if
	 * we see NONE here, its timestamp will be greater than our snapshot.
	 * Acquire: what is read again below is read after this.
	 */
	state = atomic_load_explicit(&slot->commit_state, memory_order_acquire);

	/*
	 * If the version is still uncommitted now, the state we read was that of
	 * its own transaction: a slot runs one at a time.
	 */
	if (!(version_ts(v) & TS_UNCOMMITTED) || row_head(row) != head)
	{
		*retry = true;
		return NULL;
	}
	if (state != COMMIT_NONE && mot_view_sees(view, state))
	{
		/* (DRAWING is less than any snapshot): it is being installed */
		*retry = true;
		return NULL;
	}
	while (v != NULL && (version_ts(v) & TS_UNCOMMITTED))
		v = version_below(row, v);
	return v;
}

/* of a snapshot that lacks some commits, and of a number above it */
bool
mot_beyond_sees(const mot_beyond *beyond, mot_ts ts)
{
	if (ts > beyond->upto)
		return false;
	for (unsigned i = 0; i < beyond->n; i++)
		if (beyond->without[i] == ts)
			return false;
	return true;
}

/*
 * An old snapshot's walk down the long chain of a row that many have changed since.
 * An index has an entry for each key that the row has had, and each leads down the
 * whole chain again, which is quadratic in the changes: so while cursors are open the
 * session remembers where long walks ended, and the next joins the end.  What is
 * found of a snapshot stays where it is as long as that is held.
 */
#define WALK_LONG 32
#define WALKS_KNOWN 65536		/* rows, 1 MB */

static bool
walk_known(const mot_session *s, const mot_view *view, const mot_row *row, mot_version **end)
{
	uint64_t	known;

	if (s->open_cursors == 0 || s->walked_snapshot != view->snapshot || view->beyond != NULL)
		return false;
	known = mot_map_get(&s->walked, (uintptr_t) row);
	if (known == 0)
		return false;
	*end = (mot_version *) (uintptr_t) (known & ~UINT64_C(1));
	return true;
}

static void
walk_remember(mot_session *s, const mot_view *view, const mot_row *row, const mot_version *end)
{
	if (s->open_cursors == 0 || view->beyond != NULL)
		return;
	if (s->walked_snapshot != view->snapshot || s->walked.used >= WALKS_KNOWN)
		mot_map_clear(&s->walked);
	s->walked_snapshot = view->snapshot;
	/* (it may end at nothing, too; without memory for it, it is walked again) */
	(void) mot_map_put(&s->walked, (uintptr_t) row, (uintptr_t) end | 1);
}

const mot_version *
mot_version_visible(mot_session *s, const mot_view *view, mot_row *row)
{
	unsigned	spins = 0;
	unsigned	passed = 0;
	uint64_t	head;
	mot_version *v;
	uint64_t	ts;

	for (;;)
	{
		head = row_head(row);
		MOT_STOP_POINT("row-seen");
		v = head_version(head);
		if (mot_likely(head_owner(head) == 0 && s->deferred_count == 0))
			break;
		if (session_has_own(s))
		{
			mot_version *own = mot_own_newest(s, row, head);

			if (own != NULL)
			{
				while (own != NULL && ((ts = version_ts(own)) & TS_UNCOMMITTED))
				{
					if ((ts & ~TS_UNCOMMITTED) < view->command)
						return version_is_tombstone(own) ? NULL : own;
					own = version_below(row, own);
				}
				if (own != NULL || head_owner(head) == s->self)
				{
					v = own;
					break;
				}

				/*
				 * deferred, and all of it by this command or later: the row
				 * as others see it
				 */
			}
			else if (head_owner(head) == s->self)
				break;
		}
		if (head_owner(head) != 0 && v != NULL && (version_ts(v) & TS_UNCOMMITTED))
		{
			bool		retry;

			v = skip_uncommitted(s, row, head, view, &retry);
			if (retry)
			{
				wait_for_install(&spins);
				continue;
			}
		}
		break;
	}

	/*
	 * Timestamps fall along the chain.  What we pass is newer than our
	 * snapshot, so what it superseded is still there (see reclaim.c).
	 */
	while (v != NULL && !mot_view_sees(view, version_ts(v)))
	{
		/*
		 * A top that was committed when its head was read can only be
		 * followed by committed ones; an own intermediate version of the same
		 * commit carries the same timestamp and is passed, too.
		 */
		MOT_STOP_POINT("version-passed");
		v = version_below(row, v);
		if (mot_unlikely(++passed == WALK_LONG) && walk_known(s, view, row, &v))
			break;
	}
	if (mot_unlikely(passed > WALK_LONG))
		walk_remember(s, view, row, v);
	if (v == NULL)
		return NULL;
	session_saw(s, version_ts(v));
	return version_is_tombstone(v) ? NULL : v;
}

const mot_version *
mot_row_visible(mot_session *s, const mot_view *view, mot_table *table, mot_row *row)
{
	(void) table;
	return row_visible(s, view, row);
}

/*
 * The newest committed version of a row, which another transaction may be
 * changing.  A commit stamps its versions from the oldest to the newest, so
 * while it is being installed one that never was anybody's newest looks like
 * it; that is waited for.
 */
mot_version *
mot_newest_committed(mot_session *s, mot_row *row)
{
	unsigned	spins = 0;

	for (;;)
	{
		uint64_t	head = row_head(row);
		unsigned	owner = head_owner(head);
		mot_version *top = head_version(head);
		mot_version *v = top;
		const		_Atomic uint64_t *state;
		uint64_t	drawn;

		if (owner == 0 || owner == s->owner)
		{
			while (v != NULL && (version_ts(v) & TS_UNCOMMITTED))
				v = version_below(row, v);
			return v;
		}
		if (v == NULL || !(version_ts(v) & TS_UNCOMMITTED))
			return v;

		/*
		 * Below the top only while its transaction has not drawn, or has
		 * drawn a number above what we hold: what a commit supersedes is
		 * freed as of its timestamp.  (Who has drawn may be waiting for a
		 * standby, and we are not to wait for that.)  As in skip_uncommitted,
		 * what is drawn after we have seen NONE is above our snapshot; and
		 * the state is that of this transaction if the top is still
		 * uncommitted.  Acquire: both are read after it.
		 */
		state = &s->engine->slot[owner - 1].commit_state;
		drawn = atomic_load_explicit(state, memory_order_acquire);
		if ((drawn == COMMIT_NONE || (drawn != COMMIT_DRAWING && drawn > mot_snapshot_held(s))) &&
			(version_ts(top) & TS_UNCOMMITTED) && row_head(row) == head)
		{
			while (v != NULL && (version_ts(v) & TS_UNCOMMITTED))
				v = version_below(row, v);

			/*
			 * acquire, and after the timestamps: if one that we saw was
			 * stamped by this commit without our having seen its number, we
			 * see DRAWING or more, or (it being over) the top stamped, too
			 */
			if ((v == NULL || drawn == COMMIT_NONE || version_ts(v) != drawn) &&
				atomic_load_explicit(state, memory_order_acquire) == drawn &&
				(version_ts(top) & TS_UNCOMMITTED) && row_head(row) == head)
				return v;
		}
		wait_for_install(&spins);
	}
}

const mot_version *
mot_row_newest(mot_session *s, mot_row *row)
{
	mot_version *v = session_has_own(s) ? mot_own_newest(s, row, row_head(row)) : NULL;

	if (v == NULL)
		v = mot_newest_committed(s, row);
	if (v != NULL)
		session_saw(s, version_ts(v));
	/* (one of its own tells it nothing) */
	if (mot_unlikely(s->validate) && v != NULL && !(version_ts(v) & TS_UNCOMMITTED) &&
		version_ts(v) > s->snapshot)
		s->saw_newest = s->learned = true;
	return v == NULL || version_is_tombstone(v) ? NULL : v;
}

bool
mot_row_moved_away(mot_session *s, mot_row *row)
{
	mot_version *v = mot_newest_committed(s, row);

	return v != NULL && version_is_tombstone(v) && (version_link(v) & LINK_MOVED) != 0;
}

unsigned
mot_version_changes(const mot_row *row, const mot_version *version)
{
	unsigned	n = 0;

	while (version != NULL && (version_ts(version) & TS_UNCOMMITTED))
	{
		version = version_below(row, version);
		n++;
	}
	return n;
}

unsigned
mot_row_changes(mot_session *s, mot_row *row, uint32_t *command)
{
	const mot_version *v = session_has_own(s) ? mot_own_newest(s, row, row_head(row)) : NULL;

	if (v == NULL)
		return 0;
	*command = (uint32_t) (version_ts(v) & ~TS_UNCOMMITTED);
	return mot_version_changes(row, v);
}

const mot_version *
mot_row_after_changes(mot_session *s, const mot_view *view, mot_row *row, unsigned changes)
{
	const mot_version *v = session_has_own(s) ? mot_own_newest(s, row, row_head(row)) : NULL;
	unsigned	n = mot_version_changes(row, v);
	mot_view	before = *view;

	if (changes > n)
		return NULL;
	for (; n > changes; n--)
		v = version_below(row, v);
	if (changes == 0 && (v == NULL || (version_ts(v) & TS_UNCOMMITTED)))
	{
		/* not changed, or the change is deferred and has nothing below it yet */
		before.command = 0;
		return row_visible(s, &before, row);
	}
	return v == NULL || version_is_tombstone(v) ? NULL : v;
}

unsigned
mot_row_number_bits(const mot_engine *engine)
{
	size_t		size = mot_region_mapping_size(engine->region);
	unsigned	bits = 1;

	while (bits < 47 && (size >> 4) >> bits != 0)
		bits++;
	return bits;
}

uint64_t
mot_row_number(mot_session *s, const mot_row *row)
{
	return mot_region_offset(mot_region_base(s->engine->region), row) >> 4;
}

mot_row *
mot_row_by_number(mot_session *s, mot_table *table, uint64_t number)
{
	(void) s;
	if (number >> 47 != 0)
		return NULL;
	return mot_row_find(table->rows, number << 4);
}

/* -------------------------------------------------------- sequential scans */

_Static_assert(sizeof(mot_page_view) <= sizeof(((mot_scan *) 0)->opaque),
			   "mot_scan has no room for the page view");

void
mot_scan_begin(mot_session *s, mot_scan *scan, mot_table *table, const mot_view *view)
{
	scan->table = table;
	scan->view = *view;
	scan->next_page = 0;
	scan->in_page = false;
	if (s->validate && !view->aside)
		mot_read_pool(s, table);
	scan->pages = mot_pool_directory_size(table->rows);
}

/* the next page that has rows; false at the end */
static bool
next_page(mot_session *s, mot_scan *scan)
{
	mot_page_view *page = (mot_page_view *) (void *) scan->opaque;

	while (scan->next_page < scan->pages)
	{
		uint64_t	i = scan->next_page++;

		/* of the last page we know rows that we see, at most */
		mot_session_move_on(s);
		if (!mot_pool_page(scan->table->rows, i, page))
			continue;
		scan->in_page = true;
		if (mot_unlikely(s->validate) && !scan->view.aside)
			mot_read_page(s, scan->table, page);
		return true;
	}
	return false;
}

bool
mot_scan_next(mot_session *s, mot_scan *scan, mot_row **row,
			  const mot_version **version)
{
	mot_page_view *page = (mot_page_view *) (void *) scan->opaque;

	while (scan->in_page || next_page(s, scan))
	{
		while ((*row = mot_page_next(scan->table->rows, page)) != NULL)
		{
			*version = row_visible(s, &scan->view, *row);
			if (*version != NULL)
				return true;
		}
		scan->in_page = false;
	}
	return false;
}

/* does another transaction have a new version of the row, and who is that? */
static bool
is_held(mot_session *s, mot_row *row, mot_holder *holder)
{
	for (;;)
	{
		uint64_t	head = row_head(row);
		unsigned	owner = head_owner(head);
		mot_version *v = head_version(head);

		if (owner == 0 || owner == s->owner)
			return false;
		/* (a savepoint before its end may be gone back to) */
		while (v != NULL && (version_ts(v) & TS_UNCOMMITTED) && version_is_tombstone(v))
			v = version_below(row, v);
		if (v == NULL || !(version_ts(v) & TS_UNCOMMITTED))
			return false;
		holder->slot = owner - 1;
		holder->row = row;

		/*
		 * acquire: before the second look at the head, which shows that it
		 * was the holder's
		 */
		holder->host_id = atomic_load_explicit(&s->engine->slot[owner - 1].host_id, memory_order_acquire);
		if (row_head(row) == head)
			return true;
	}
}

bool
mot_scan_held(mot_session *s, mot_scan *scan, mot_holder *holder)
{
	mot_page_view *page = (mot_page_view *) (void *) scan->opaque;

	while (scan->in_page || next_page(s, scan))
	{
		mot_row    *row;

		while ((row = mot_page_next(scan->table->rows, page)) != NULL)
			if (is_held(s, row, holder))
				return true;
		scan->in_page = false;
	}
	return false;
}

bool
mot_scan_page(mot_table *table, uint64_t i, const mot_row **first, const mot_row **last)
{
	mot_page_view page;

	if (!mot_pool_page(table->rows, i, &page))
		return false;
	*first = page.page;
	*last = (const mot_row *) (const void *) ((const char *) page.page + (page.objects - 1) * page.object_size);
	return true;
}
