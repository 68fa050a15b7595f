/*-------------------------------------------------------------------------
 *
 * mot_quota.h
 *	  The part of mot_engine.h for a host that limits what tables take: each by itself,
 *	  and all of a database, or of a role, together.
 *
 * A quota is there as long as some table counts in it, be it one that was dropped and
 * waits for reclamation: that has its memory.  Tables count in their database's from the
 * beginning, and in a role's from when the host says so.  A limit is of what new rows may
 * bring it to; keys and changes may exceed it by up to a sixteenth (or 256 kB), and deletes do
 * not ask (mot_purpose, in memory.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_QUOTA_H
#define MOT_QUOTA_H

typedef struct mot_quota mot_quota;

typedef enum mot_quota_kind
{
	MOT_QUOTA_DATABASE, MOT_QUOTA_ROLE
} mot_quota_kind;

typedef struct mot_quota_report
{
	mot_quota_kind kind;
	uint32_t	host_id;
	uint64_t	bytes;
	uint64_t	limit;			/* 0: none */
} mot_quota_report;

extern void mot_table_set_limit(mot_table *table, uint64_t bytes);	/* 0: none */

/*
 * The quota, made if it is not there; NULL: memory is out.  It stays until it is released,
 * or has been handed to mot_table_put_role, which does not fail: the table counts in that one
 * from now on, with all it has.  First: unless somebody has said already for which one.
 */
extern mot_quota *mot_quota_hold(mot_session *session, mot_quota_kind kind, uint32_t host_id);
extern void mot_quota_release(mot_engine *engine, mot_quota *quota);
extern void mot_table_put_role(mot_table *table, mot_quota *quota, bool first);

/* which one the table counts in; NULL: nobody has said */
extern mot_quota *mot_table_quota(const mot_table *table, mot_quota_kind kind);
extern void mot_quota_report_get(const mot_quota *quota, mot_quota_report *report);
extern bool mot_quota_find(mot_engine *engine, mot_quota_kind kind, uint32_t host_id, mot_quota_report *report);

/*
 * Limits.  A new quota has none, until the host looks what it is.  Who does so (learn) may
 * be late: it asks for "changes" first, and has no effect if the limit was set meanwhile.  Set:
 * of a quota that is not there it is to be learned.
 */
extern bool mot_quota_is_known(mot_engine *engine, const mot_quota *quota, uint64_t *changes);
extern void mot_quota_learn(mot_engine *engine, mot_quota *quota, uint64_t changes, uint64_t limit);
extern void mot_quota_set(mot_engine *engine, mot_quota_kind kind, uint32_t host_id, uint64_t limit);

/*
 * Its quotas and the reserve for changes bind the table from now on.  Before that, it only
 * counts: limits do not keep rows from coming back that were there.
 */
extern void mot_table_set_bounded(mot_table *table);

/* The last MOT_TABLE_FULL was a quota's; false: the table's own limit's. */
extern bool mot_session_full(const mot_session *session, mot_quota_report *report);

/*
 * new rows of bounded tables leave that part of the memory free; at least 1/16, which any rows do
 */
extern void mot_engine_set_insert_reserve(mot_engine *engine, double part);

#endif							/* MOT_QUOTA_H */
