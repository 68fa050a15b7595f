/*-------------------------------------------------------------------------
 *
 * journal.h
 *	  The shapes of a transaction's journal (journal.c), and the map in which
 *	  addresses are found again; a part of internal.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_JOURNAL_H
#define MOT_JOURNAL_H

/*
 * What a transaction did, in order: what commit has to install and rollback
 * to undo.  Private memory, 32 bytes an entry, in chunks that never move.
 */
typedef enum journal_kind
{
	J_INSERT = 1,				/* row; a = table */
	J_UPDATE,					/* row; a = table, b = new version */
	J_DELETE,					/* row; a = table, b = tombstone */
	J_LOCK,						/* row */
	J_ADD,						/* row; a = index, b = key (up to 8 bytes
								 * inline), c = length, tail included */
	J_DROP,						/* row; a = index, b = index_drop */
	J_SHARE,					/* row; a = share, c = 1 if it was only made
								 * stronger */
	J_INSERT_ADD				/* J_INSERT and its first J_ADD in one: row;
								 * a, b, c of that, the key inline */
} journal_kind;

#define JE_LOCKED_HERE	0x10u	/* this entry took the row's lock */
#define JE_DEFERRED		0x20u	/* the version is not in the row's chain yet;
								 * c = previous entry of this row + 1 */
#define JE_KIND			0x0fu

typedef struct journal_entry
{
	uint64_t	what;			/* [ kind and flags 16 | row 48 ] */
	uint64_t	a;
	uint64_t	b;
	uint64_t	c;
} journal_entry;

static inline mot_row *
entry_row(const journal_entry *e)
{
	return (mot_row *) (uintptr_t) (e->what & PTR_MASK);
}

static inline unsigned
entry_flags(const journal_entry *e)
{
	return (unsigned) (e->what >> 48);
}

static inline journal_kind
entry_kind(const journal_entry *e)
{
	return (journal_kind) (entry_flags(e) & JE_KIND);
}

/* of J_ADD: its key is elsewhere, see mot_journal_key */
static inline bool
entry_has_long_key(const journal_entry *e)
{
	return entry_kind(e) == J_ADD && e->c > sizeof(e->b);
}

/* of J_ADD and J_INSERT_ADD */
static inline const void *
entry_key(const journal_entry *e)
{
	return e->c <= sizeof(e->b) ? (const void *) &e->b : (const void *) (uintptr_t) e->b;
}

#define JOURNAL_CHUNK	2048	/* entries: 64 KB */

typedef struct key_chunk
{
	struct key_chunk *previous;
	size_t		used;
	size_t		size;
	uint8_t		bytes[];
} key_chunk;

/*
 * Map from an address to a 64-bit value; value 0 means absent.  The items lie
 * side by side in the order in which they came, so going through them and
 * forgetting them costs by their number; the few of a small transaction are
 * found by looking at all, more by a hash table of item numbers + 1.
 */
typedef struct map_item
{
	uint64_t	key;
	uint64_t	value;
} map_item;

typedef struct address_map
{
	map_item   *item;
	uint32_t   *hash;			/* in use while there are more than MAP_SMALL */
	uint64_t	used;
	uint64_t	room;
	uint64_t	hash_size;		/* power of two, at least twice "room"; or 0 */
} address_map;

#define MAP_SMALL 24

#endif							/* MOT_JOURNAL_H */
