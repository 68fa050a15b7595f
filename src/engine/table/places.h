/*-------------------------------------------------------------------------
 *
 * places.h
 *	  What the files behind mot_places.h share.
 *
 *	places.c	ranges of a table and their nodes
 *	move.c		rows and versions that come to where they belong
 *	bind.c		processes that keep to a node's cpus
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ENGINE_PLACES_H
#define MOT_ENGINE_PLACES_H

#include "mot_engine.h"
#include "port.h"

/* a table's */
typedef struct mot_places
{
	uint32_t	index;			/* host_id */
	uint32_t	skip;
	uint32_t	n;
	mot_table_place place[];
} mot_places;

extern const mot_places *mot_table_places(const mot_table *t);
extern unsigned mot_places_node(const mot_places *p, const void *key, size_t len);
extern unsigned mot_session_placed(mot_session *s, const mot_table *t);

/* as many cpus as topology.c knows */
#define MACHINE_WORDS 64

/* what mot_machine_look has seen last */
typedef struct mot_machine
{
	_Atomic uint32_t looks;		/* at which something had changed; 0: none yet */
	_Atomic uint64_t alive;		/* bit n: node n has a cpu that is allowed */
	_Atomic uint64_t allowed[MACHINE_WORDS];	/* cpus */
} mot_machine;

#endif							/* MOT_ENGINE_PLACES_H */
