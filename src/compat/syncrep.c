/*-------------------------------------------------------------------------
 *
 * syncrep.c
 *	  Are there synchronous standbys to wait for?
 *
 * The server's commits ask shared memory, where the checkpointer writes what
 * the configuration says; so do we.  A session's own copy of the setting is
 * read anew only when a client's message has come, and a procedure may commit
 * for hours before the next one.
 *
 * Minor versions differ in what the word means (a bool, or bits since the releases
 * of May 2025), not in where it lies; and a module built with the one runs
 * with the other.  So the running server's number is asked.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/syncrep.h"
#include "replication/syncrep.h"
#include "replication/walsender_private.h"
#include "utils/guc.h"

#define HAS_BITS(version) \
	((version) >= 170005 || ((version) >= 160009 && (version) < 170000) || \
	 ((version) >= 150013 && (version) < 160000))

#if HAS_BITS(PG_VERSION_NUM)
#define DEFINED_WORD sync_standbys_status
#else
#define DEFINED_WORD sync_standbys_defined
#endif

/* as SYNC_STANDBY_INIT and SYNC_STANDBY_DEFINED */
#define BIT_KNOWN	1
#define BIT_DEFINED 2

StaticAssertDecl(sizeof(((WalSndCtlData *) 0)->DEFINED_WORD) == 1, "bool or uint8");

bool
MotSyncStandbysDefined(void)
{
	static int	version = 0;
	uint8		word = *(volatile uint8 *) &WalSndCtl->DEFINED_WORD;

	if (unlikely(version == 0))
		version = atoi(GetConfigOption("server_version_num", false, false));
	if (!HAS_BITS(version))
		return word != 0;
	if (word & BIT_KNOWN)
		return (word & BIT_DEFINED) != 0;

	/* the checkpointer has not yet looked, and we have just begun */
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0';
}
