/*-------------------------------------------------------------------------
 *
 * collation.h
 *	  What the catalogue says of a collation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_COMPAT_COLLATION_H
#define MOT_COMPAT_COLLATION_H

#include "postgres.h"

#include "catalog/pg_collation.h"

/* from 17 on: the server itself, by bytes */
#ifndef COLLPROVIDER_BUILTIN
#define COLLPROVIDER_BUILTIN 'b'
#endif

typedef struct MotCollationSource
{
	char		provider;
	bool		deterministic;
	char	   *locale;
	char	   *rules;			/* in addition; or NULL */
} MotCollationSource;

/* a collation of this database, the database's own included; false: another provider's */
extern bool MotCollationRead(Oid collation, MotCollationSource *source);

#endif							/* MOT_COMPAT_COLLATION_H */
