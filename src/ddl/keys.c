/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Keys as the grammar writes them, turned into index statements; and the
 *	  constraints a MOT table cannot have.
 *
 * The server's parse analysis refuses PRIMARY KEY and UNIQUE on a foreign
 * table, so they are taken out of the raw statement before it gets there.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"


void
MotRefuse(const char *table, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s are not supported on memory-optimized table \"%s\"", what, table),
			 errhint("%s", hint)));
}

void
MotRefuseDeferrable(const char *table)
{
	MotRefuse(table, "deferrable keys", "Declare the key without DEFERRABLE; it is then checked at once.");
}

void
MotRefuseExclusion(const char *table)
{
	MotRefuse(table, "exclusion constraints", "Use a UNIQUE constraint where equality is what must not repeat.");
}

void
MotRefuseIncluded(const char *table)
{
	MotRefuse(table, "included columns",
			  "Create the index without INCLUDE: every lookup reaches the whole row in memory anyway.");
}

/*
 * The IndexStmt that a PRIMARY KEY or UNIQUE constraint stands for, as
 * transformIndexConstraint makes it.
 */
IndexStmt *
MotConstraintToIndex(const RangeVar *relation, Constraint *constraint)
{
	IndexStmt  *index = makeNode(IndexStmt);

	if (constraint->contype == CONSTR_FOREIGN)
		MotRefuse(relation->relname, "foreign keys",
				  "CREATE TABLE ... USING " MOT_TABLE_AM_NAME " makes a memory-optimized table that can have them.");
	if (constraint->contype == CONSTR_EXCLUSION)
		MotRefuseExclusion(relation->relname);
	if (constraint->deferrable || constraint->initdeferred)
		MotRefuseDeferrable(relation->relname);
	if (constraint->including != NIL)
		MotRefuseIncluded(relation->relname);

	index->unique = true;
	index->primary = (constraint->contype == CONSTR_PRIMARY);
	index->isconstraint = true;
	index->nulls_not_distinct = constraint->nulls_not_distinct;
	index->idxname = constraint->conname;
	index->relation = copyObject((RangeVar *) relation);
	index->accessMethod = pstrdup(MOT_AM_NAME);
	index->options = constraint->options;
	index->tableSpace = constraint->indexspace;

	foreach_node(String, name, constraint->keys)
	{
		char	   *key = strVal(name);
		IndexElem  *elem;

		foreach_ptr(IndexElem, other, index->indexParams)
		{
			if (strcmp(other->name, key) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 index->primary ?
						 errmsg("column \"%s\" appears twice in primary key constraint", key) :
						 errmsg("column \"%s\" appears twice in unique constraint", key)));
		}
		elem = makeNode(IndexElem);
		elem->name = pstrdup(key);
		elem->ordering = SORTBY_DEFAULT;
		elem->nulls_ordering = SORTBY_NULLS_DEFAULT;
		index->indexParams = lappend(index->indexParams, elem);
	}
	return index;
}

List *
MotTakeColumnKeys(const RangeVar *relation, ColumnDef *column)
{
	List	   *keys = NIL;
	List	   *rest = NIL;
	IndexStmt  *last = NULL;	/* what DEFERRABLE and the like after it
								 * belong to */

	foreach_node(Constraint, constraint, column->constraints)
	{
		switch (constraint->contype)
		{
			case CONSTR_PRIMARY:
			case CONSTR_UNIQUE:
			case CONSTR_FOREIGN:
			case CONSTR_EXCLUSION:
				if (constraint->keys == NIL)
					constraint->keys = list_make1(makeString(pstrdup(column->colname)));
				last = MotConstraintToIndex(relation, constraint);
				keys = lappend(keys, last);
				break;
			case CONSTR_ATTR_DEFERRABLE:
			case CONSTR_ATTR_DEFERRED:
				if (last)
					MotRefuseDeferrable(relation->relname);
				rest = lappend(rest, constraint);
				break;
			case CONSTR_ATTR_NOT_DEFERRABLE:
			case CONSTR_ATTR_IMMEDIATE:

				/*
				 * the default; the server would not find a key to attach it
				 * to
				 */
				if (!last)
					rest = lappend(rest, constraint);
				break;
			default:
				last = NULL;
				rest = lappend(rest, constraint);
				break;
		}
	}
	column->constraints = rest;
	return keys;
}

/* ---------------------------------------------- heap tables that point at us */

static void
refuse_reference(Constraint *constraint)
{
	if (constraint->contype == CONSTR_FOREIGN && constraint->pktable &&
		MotDdlNamesMotTable(constraint->pktable))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("foreign keys that reference memory-optimized table \"%s\" are not supported",
						constraint->pktable->relname),
				 errhint("CREATE TABLE ... USING %s makes a memory-optimized table that can be referenced.", MOT_TABLE_AM_NAME)));
}

void
MotRefuseReferences(List *elements)
{
	foreach_ptr(Node, element, elements)
	{
		if (IsA(element, Constraint))
			refuse_reference((Constraint *) element);
		else if (IsA(element, ColumnDef))
		{
			foreach_node(Constraint, constraint, ((ColumnDef *) element)->constraints)
				refuse_reference(constraint);
		}
	}
}
