/*-------------------------------------------------------------------------
 *
 * mot_places.h
 *	  The part of mot_engine.h for a host that says on which NUMA node ranges
 *	  of a table live, and which processors its processes keep to.
 *
 * A key's position is a number of 64 bits: the eight bytes of the key of the
 * table's first index behind the "skip" that all keys begin with.  Keys compare
 * as bytes do, so their positions rise with them.  A range reaches from its "low"
 * to that of the next one.
 *
 * What is placed is memory: a new row comes from the node of its range, and so
 * does what will be its versions, which come from where the row is.  Rows that
 * are elsewhere are moved afterwards, see mot_table_places_move.  No answer
 * depends on any of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PLACES_H
#define MOT_PLACES_H

#define MOT_MAX_PLACES 128		/* of a table */

typedef struct mot_table_place
{
	uint64_t	low;			/* where the range begins */
	uint16_t	node;
} mot_table_place;

/* nodes are 0 .. n-1, as hwloc has them in their order */
extern unsigned mot_engine_nodes(const mot_engine *engine);

static inline uint64_t
mot_key_position(const void *key, size_t len, unsigned skip)
{
	uint64_t	position = 0;

	for (size_t i = skip; i < skip + 8; i++)
		position = position << 8 | (i < len ? ((const uint8_t *) key)[i] : 0);
	return position;
}

/*
 * All places of a table at once; the first begins at 0 and each is above the one
 * before.  None: the table is not placed any more.  Nobody waits for it, nor does
 * it wait: who is at it meanwhile goes by the old ones or the new ones.
 * MOT_TOO_LARGE: they are too many, not in order, or of a node that is not there;
 * MOT_NOT_FOUND: the table has no index; MOT_NO_MEMORY.
 */
extern mot_status mot_table_places_set(mot_session *session, mot_table *table, unsigned skip,
									   const mot_table_place *places, unsigned n);

/* What they are: how many; at most MOT_MAX_PLACES go to "places", if it is not NULL. */
extern unsigned mot_table_places_get(const mot_table *table, unsigned *skip, mot_table_place *places);

/* host_id of the index whose keys say where the table's rows live, or 0: the table has no places */
extern uint32_t mot_table_placed_by(const mot_table *table);

/*
 * Of a table that has places: the row that this session inserts or loads next, if
 * it is into this table, has this key in that index.  (Who does not say it has
 * the row from the node that it is on.)
 */
extern void mot_row_place(mot_session *session, const mot_table *table, const void *key, size_t len);

/* on which node is the memory of the row, and of what is its newest version? */
extern unsigned mot_row_node(mot_session *session, const mot_row *row, unsigned *version_node);

/*
 * Rows and versions that are not where they belong come there, some at each call, of
 * about "budget" rows.
 *
 * A version is copied, with its number, and the copy takes its place; a row stays
 * at its address, and its page's memory is moved under it when most of the
 * page's rows belong there (a machine with real nodes asks for CAP_SYS_NICE
 * for that).  Rows that are locked are left for the next time.
 *
 * What was copied is in memory twice for a while, for as long as there are older snapshots.
 * So much of it that anybody might fail for it is not made, see move.c.
 *
 * "move" is zero at first, and keeps where to go on, and counts.
 */
typedef enum mot_move_end
{
	MOT_MOVE_DONE,				/* the end of the table; the next call begins
								 * anew */
	MOT_MOVE_MORE,				/* there is more to do at once */
	MOT_MOVE_WAITS				/* the next call goes on, after some of what
								 * is owed to reclamation has been paid */
} mot_move_end;

typedef struct mot_place_move
{
	uint64_t	next;			/* page of the table's directory */
	uint64_t	rows;			/* looked at */
	uint64_t	versions;		/* copied */
	uint64_t	pages;			/* whose memory was moved */
	uint64_t	refused;		/* pages that the system would not move */
	uint64_t	skipped;		/* rows that somebody held, or without a key,
								 * or whose version there is no memory for */
	uint64_t	away;			/* rows seen on another node than their own,
								 * and left there */
} mot_place_move;

extern mot_move_end mot_table_places_move(mot_session *session, mot_table *table, unsigned budget,
										  mot_place_move *move);

/* ------------------------------------------------------------ processors */

/*
 * Which processors there are is looked at by one process, again and again, that never
 * asks for itself to be kept to some: true if anything has changed.  alive: bit n is set
 * if node n has a processor (all nodes', as long as nobody has looked).
 */
extern bool mot_machine_look(mot_engine *engine);
extern uint64_t mot_nodes_alive(const mot_engine *engine);

/*
 * The calling process (in tests: thread) keeps to the node's processors from now on, as
 * far as it is allowed to run there; MOT_NODE_ANY: it runs where it may, as it did before
 * the first call.  True: it is kept there.  False if none of them is there for
 * it, and it goes on where it may.  Cheap if nothing has changed since the last call;
 * what a look has found is minded then.
 */
#define MOT_NODE_ANY 0xffffu

/* The session's process is on another node, and will stay there. */
extern void mot_session_settle(mot_session *session);
extern bool mot_process_keep_to(mot_engine *engine, unsigned node);

#endif							/* MOT_PLACES_H */
