/*-------------------------------------------------------------------------
 *
 * journal.c
 *	  A transaction's private memory: its journal, keys, and address maps.
 *
 * The journal grows by chunks that never move, so a transaction of ten
 * million rows needs no copying; what it allocated it keeps for the next
 * transaction, up to a bound.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "internal.h"

#define KEEP_CHUNKS 16
#define KEY_CHUNK_SIZE (64 * 1024)

/* make sure the next mot_journal_add cannot fail */
bool
mot_journal_reserve(mot_session *s)
{
	uint64_t	need = s->entries / JOURNAL_CHUNK;

	if (mot_likely(need < s->chunks))
		return true;
	if (need >= s->chunk_slots)
	{
		uint64_t	n = s->chunk_slots ? s->chunk_slots * 2 : 64;
		journal_entry **p = realloc(s->chunk, n * sizeof(*p));

		if (p == NULL)
			return false;
		s->chunk = p;
		s->chunk_slots = n;
	}
	s->chunk[need] = malloc(JOURNAL_CHUNK * sizeof(journal_entry));
	if (s->chunk[need] == NULL)
		return false;
	s->chunks = need + 1;
	return true;
}

/* the next entry; room was reserved */
journal_entry *
mot_journal_add(mot_session *s)
{
	mot_assert(s->entries / JOURNAL_CHUNK < s->chunks);
	return journal_at(s, s->entries++);
}

/* a copy of a key that lives as long as its journal entry */
const void *
mot_journal_key(mot_session *s, const void *key, size_t len)
{
	key_chunk  *c = s->keys;
	uint8_t    *p;

	if (c == NULL || c->size - c->used < len)
	{
		size_t		size = len > KEY_CHUNK_SIZE ? len : KEY_CHUNK_SIZE;

		c = malloc(sizeof(key_chunk) + size);
		if (c == NULL)
			return NULL;
		c->previous = s->keys;
		c->used = 0;
		c->size = size;
		s->keys = c;
	}
	p = c->bytes + c->used;
	memcpy(p, key, len);
	c->used += len;
	return p;
}

/* entries are undone last to first, so a key undone is the last one still there */
void
mot_journal_release_key(mot_session *s, const void *key)
{
	const uint8_t *p = key;

	while (s->keys != NULL)
	{
		key_chunk  *c = s->keys;

		if (p >= c->bytes && p < c->bytes + c->size)
		{
			c->used = (size_t) (p - c->bytes);
			return;
		}
		s->keys = c->previous;
		free(c);
	}
}

/* all entries are done with */
void
mot_journal_clear(mot_session *s)
{
	s->entries = 0;
	while (s->chunks > KEEP_CHUNKS)
		free(s->chunk[--s->chunks]);
	while (s->keys != NULL && s->keys->previous != NULL)
	{
		key_chunk  *c = s->keys;

		s->keys = c->previous;
		free(c);
	}
	if (s->keys != NULL)
		s->keys->used = 0;
	if (s->deferred_count != 0)
		mot_map_clear(&s->deferred);
	s->deferred_count = 0;
}

void
mot_journal_free(mot_session *s)
{
	mot_journal_clear(s);
	while (s->chunks > 0)
		free(s->chunk[--s->chunks]);
	free(s->chunk);
	free(s->keys);
	mot_map_free(&s->deferred);
}

/* -------------------------------------------------------------------- maps */

static inline uint64_t
map_hash(uint64_t key)
{
	key >>= 4;					/* addresses are 16-byte aligned */
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return key ^ (key >> 32);
}

static bool
map_grow(address_map *map)
{
	address_map n = {NULL, map->size ? map->size * 2 : 256, 0};

	n.slot = calloc(n.size, 2 * sizeof(uint64_t));
	if (n.slot == NULL)
		return false;
	for (uint64_t i = 0; i < map->size; i++)
		if (map->slot[2 * i] != 0)
			(void) mot_map_put(&n, map->slot[2 * i], map->slot[2 * i + 1]);
	free(map->slot);
	*map = n;
	return true;
}

/* set key's value; false: out of memory */
bool
mot_map_put(address_map *map, uint64_t key, uint64_t value)
{
	uint64_t	i;

	if (map->used * 2 >= map->size && !map_grow(map))
		return false;
	for (i = map_hash(key) & (map->size - 1);; i = (i + 1) & (map->size - 1))
	{
		if (map->slot[2 * i] == key)
			break;
		if (map->slot[2 * i] == 0)
		{
			map->slot[2 * i] = key;
			map->used++;
			break;
		}
	}
	map->slot[2 * i + 1] = value;
	return true;
}

uint64_t
mot_map_get(const address_map *map, uint64_t key)
{
	if (map->size == 0)
		return 0;
	for (uint64_t i = map_hash(key) & (map->size - 1);; i = (i + 1) & (map->size - 1))
	{
		if (map->slot[2 * i] == key)
			return map->slot[2 * i + 1];
		if (map->slot[2 * i] == 0)
			return 0;
	}
}

void
mot_map_clear(address_map *map)
{
	if (map->size > 4096)
		mot_map_free(map);
	else if (map->used > 0)
	{
		memset(map->slot, 0, map->size * 2 * sizeof(uint64_t));
		map->used = 0;
	}
}

void
mot_map_free(address_map *map)
{
	free(map->slot);
	memset(map, 0, sizeof(*map));
}
