/*-------------------------------------------------------------------------
 *
 * load.c
 *	  The table that COPY FREEZE loads at the moment.
 *
 * The utility hook sets it, the wrapper looks at it; neither includes the
 * other.
 *
 *-------------------------------------------------------------------------
 */

#include "relation/relation.h"

Oid			MotLoadRelid = InvalidOid;
