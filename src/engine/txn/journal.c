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

/* where the key is in the hash table, or would be */
static inline uint64_t
map_place(const address_map *map, uint64_t key)
{
	uint64_t	i = map_hash(key) & (map->hash_size - 1);

	while (map->hash[i] != 0 && map->item[map->hash[i] - 1].key != key)
		i = (i + 1) & (map->hash_size - 1);
	return i;
}

static map_item *
map_find(const address_map *map, uint64_t key)
{
	uint32_t	n;

	if (map->used <= MAP_SMALL)
	{
		for (uint64_t i = 0; i < map->used; i++)
			if (map->item[i].key == key)
				return &map->item[i];
		return NULL;
	}
	n = map->hash[map_place(map, key)];
	return n == 0 ? NULL : &map->item[n - 1];
}

static bool
map_grow(address_map *map)
{
	uint64_t	room = map->room ? map->room * 2 : MAP_SMALL;
	map_item   *item;

	if (room > UINT32_MAX / 4)
		return false;
	item = realloc(map->item, room * sizeof(map_item));
	if (item == NULL)
		return false;
	map->item = item;
	if (room > MAP_SMALL)
	{
		uint64_t	size = map->hash_size ? map->hash_size * 2 : 128;
		uint32_t   *hash = calloc(size, sizeof(uint32_t));

		if (hash == NULL)
			return false;
		free(map->hash);
		map->hash = hash;
		map->hash_size = size;
		for (uint64_t i = 0; i < map->used; i++)
			map->hash[map_place(map, map->item[i].key)] = (uint32_t) (i + 1);
	}
	map->room = room;
	return true;
}

/* set key's value; false: out of memory */
bool
mot_map_put(address_map *map, uint64_t key, uint64_t value)
{
	map_item   *known = map_find(map, key);

	if (known != NULL)
	{
		known->value = value;
		return true;
	}
	if (map->used == map->room && !map_grow(map))
		return false;
	map->item[map->used].key = key;
	map->item[map->used].value = value;
	map->used++;
	if (mot_unlikely(map->used > MAP_SMALL))
	{
		/* the first one too many brings the others along */
		for (uint64_t i = map->used == MAP_SMALL + 1 ? 0 : map->used - 1; i < map->used; i++)
			map->hash[map_place(map, map->item[i].key)] = (uint32_t) (i + 1);
	}
	return true;
}

uint64_t
mot_map_get(const address_map *map, uint64_t key)
{
	const map_item *known = map_find(map, key);

	return known == NULL ? 0 : known->value;
}

void
mot_map_clear(address_map *map)
{
	if (map->hash_size > 8192)
		mot_map_free(map);
	else if (map->used > MAP_SMALL)
		memset(map->hash, 0, map->hash_size * sizeof(uint32_t));
	map->used = 0;
}

void
mot_map_free(address_map *map)
{
	free(map->item);
	free(map->hash);
	memset(map, 0, sizeof(*map));
}
