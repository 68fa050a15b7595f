/*-------------------------------------------------------------------------
 *
 * attribute.h
 *	  What of a column taking rows apart needs.
 *
 * From PostgreSQL 18 on a descriptor has that in a piece of its own beside the
 * column's row of the catalogue.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ATTRIBUTE_H
#define MOT_ATTRIBUTE_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "access/tupmacs.h"

#if PG_VERSION_NUM >= 180000
typedef CompactAttribute MotAttribute;
#define MotDescAttribute(desc, i) TupleDescCompactAttr(desc, i)
#define MotAttributeAlign(off, att) att_nominal_alignby(off, (att)->attalignby)
#define MotAttributeAlignAt(off, att, p) att_pointer_alignby(off, (att)->attalignby, (att)->attlen, p)

/* a column of a descriptor that is made by hand is ready */
#define MotAttributeMade(desc, i) populate_compact_attribute(desc, i)
#else
typedef FormData_pg_attribute MotAttribute;
#define MotDescAttribute(desc, i) TupleDescAttr(desc, i)
#define MotAttributeAlign(off, att) att_align_nominal(off, (att)->attalign)
#define MotAttributeAlignAt(off, att, p) att_align_pointer(off, (att)->attalign, (att)->attlen, p)
#define MotAttributeMade(desc, i) (TupleDescAttr(desc, i)->attcacheoff = -1)
#endif

/* all columns of it are */
#if PG_VERSION_NUM >= 190000
#define MotDescMade(desc) TupleDescFinalize(desc)
#else
#define MotDescMade(desc) ((void) 0)
#endif

/* An offset in all rows without nulls is remembered, if there is room for it. */
#if PG_VERSION_NUM >= 190000
#define MotAttributeRemember(att, off) ((void) ((off) <= PG_INT16_MAX && ((att)->attcacheoff = (int16) (off))))
#else
#define MotAttributeRemember(att, off) ((void) ((att)->attcacheoff = (off)))
#endif

/*
 * Is there no row with null in the column?  (A NOT NULL constraint may be NOT VALID, from 18 on.)
 */
#if PG_VERSION_NUM >= 180000
#define MotAttributeNotNull(desc, i) \
	(TupleDescAttr(desc, i)->attnotnull && \
	 TupleDescCompactAttr(desc, i)->attnullability != ATTNULLABLE_INVALID)
#else
#define MotAttributeNotNull(desc, i) (TupleDescAttr(desc, i)->attnotnull)
#endif

/* generated columns that are not stored (18) */
#if PG_VERSION_NUM >= 180000
#define MotHasVirtualColumns(desc) ((desc)->constr != NULL && (desc)->constr->has_generated_virtual)
#define MotIsVirtualColumn(att) ((att)->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
#else
#define MotHasVirtualColumns(desc) false
#define MotIsVirtualColumn(att) false
#endif

#endif							/* MOT_ATTRIBUTE_H */
