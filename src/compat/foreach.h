/*-------------------------------------------------------------------------
 *
 * foreach.h
 *	  Loops over lists that name the element, as the server has them from 17 on.
 *
 *	foreach_ptr(Type, p, list)		foreach_node(Type, node, list)
 *	foreach_oid(oid, list)			foreach_int(i, list)
 *
 *	  and over hash tables: foreach_hash(Type, p, hash)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_COMPAT_FOREACH_H
#define MOT_COMPAT_FOREACH_H

#include "nodes/pg_list.h"
#include "utils/hsearch.h"

#ifndef foreach_ptr

/* the outer loop declares the variable, and runs once */
#define foreach_internal(type, pointer, var, lst, func) \
	for (type pointer var = 0, pointer var##__once = (type pointer) 1; var##__once; var##__once = 0) \
		for (ForEachState var##__state = {(lst), 0}; \
			 var##__state.l != NIL && var##__state.i < var##__state.l->length && \
			 (var = func(type, &var##__state.l->elements[var##__state.i]), true); \
			 var##__state.i++)

#define foreach_element_ptr(type, cell) ((type *) lfirst(cell))
#define foreach_element_oid(type, cell) lfirst_oid(cell)
#define foreach_element_int(type, cell) lfirst_int(cell)

#define foreach_ptr(type, var, lst) foreach_internal(type, *, var, lst, foreach_element_ptr)
#define foreach_node(type, var, lst) foreach_internal(type, *, var, lst, lfirst_node)
#define foreach_oid(var, lst) foreach_internal(Oid, , var, lst, foreach_element_oid)
#define foreach_int(var, lst) foreach_internal(int, , var, lst, foreach_element_int)

#endif

/* all of a hash table; not to be left before the end */
#define foreach_hash(type, var, hash) \
	for (HASH_SEQ_STATUS var##__seq, *var##__once = (hash_seq_init(&var##__seq, (hash)), &var##__seq); \
		 var##__once != NULL; var##__once = NULL) \
		for (type *var; (var = hash_seq_search(var##__once)) != NULL;)

#endif							/* MOT_COMPAT_FOREACH_H */
