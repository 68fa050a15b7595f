/*-------------------------------------------------------------------------
 *
 * clients.h
 *	  A client's messages, without the headers of what encrypts them.
 *
 * The server's own header wants those of OpenSSL and GSSAPI, if it was built with them, for the members
 * of a Port.  Nobody here looks into a Port, and whoever compiles us need not have them.  (To be included
 * after "postgres.h", before anything else that may include that header.)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_CLIENTS_H
#define MOT_CLIENTS_H

#include "postgres.h"

#undef ENABLE_GSS
#undef ENABLE_SSPI
#undef USE_SSL
#undef USE_OPENSSL
#include "libpq/libpq.h"

/* has more been received already? */
#if PG_VERSION_NUM >= 170000
#define MotClientHasSent() (pq_buffer_remaining_data() > 0)
#else
#define MotClientHasSent() pq_buffer_has_data()
#endif

#endif							/* MOT_CLIENTS_H */
