/*-------------------------------------------------------------------------
 *
 * record.h
 *	  What is in a redo record.
 *
 * XLogInsert(mot_resource_manager_id, info): info is one of the MOT_XLOG_ values, main
 * data is a header and operations.  A transaction whose operations
 * fill more than MOT_PIECE_SIZE is given an xid, and writes MOT_XLOG_PIECE records
 * and a MOT_XLOG_MIXED; operations do not straddle pieces except the bytes of one
 * OP_LONG (below).  Everything is in the machine's byte order, as WAL is,
 * unaligned.  "v" means a varint: 7 bits a byte, low ones first.
 *
 * The header: the format's number 1, v stream, time 8.  In format 1 it was stream 8,
 * time 8.  The stream being a record's position, that began with a multiple of 8; so no
 * format's number is one.
 *
 *	MOT_XLOG_COMMIT		MOT only: what it says has happened
 *	MOT_XLOG_MIXED		in doubt until header.xid's fate is known
 *	MOT_XLOG_PIECE		one of a stream's earlier pieces
 *	MOT_XLOG_FORGET		the stream was aborted
 *	MOT_XLOG_START		a server has started to write: no stream of before
 *						will go on, no xid in doubt of before is running but those that
 *						are prepared, whose numbers follow, 4 bytes each
 *	MOT_XLOG_CHANGES	what logical decoding shows of the xid's changes of a table; of no
 *						matter to replay.  It has no header, but: the format's number 1,
 *						tablespace 4, database 4, file 4; then changes.  Each is a byte that
 *						says of what kind it is (MotLogicalKind) and whether there is an old
 *						row (0x10) and a new one (0x20); and these rows: v host bits, v size,
 *						row bytes
 *
 * A stream is named by the position at which its first piece starts.
 *
 * Operations, in the order in which they are applied (that of the journal,
 * with definitions first and new indexes last):
 *
 *	OP_TABLE		dbid 4, relid 4: the table of the operations that follow
 *	OP_CREATE		v length, definition (relation/definition.h): an empty table takes the
 *					place of what is there; its rows follow as OP_INSERT
 *	OP_DEFINE		v length, definition: columns as they are from now on; indexes that are not in
 *					it go, indexes that are new in it are made by OP_INDEX
 *	OP_INDEX		indexoid 4: the index of the current definition is built
 *	OP_DROP			the table goes
 *	OP_DROP_DATABASE dbid 4
 *	OP_INSERT		v host bits, v size, row bytes
 *	OP_UPDATE		identity, v host bits, v new size, segments:
 *					{ v bytes kept from the old row at this place, v count, new bytes }
 *					until the new size is reached (kept bytes are at the same
 *					offset in both; see MotRecordDiff)
 *	OP_DELETE		identity
 *	OP_PREPARED		v length, identifier: the transaction is one that PREPARE TRANSACTION ends, so its
 *					fate may not be known for long; the first operation of such a one
 *	OP_PREPARED_READS	the same of one at SERIALIZABLE: what it has read is to stand until it is decided
 *	OP_LOCK			strength 1 (mot_row_mode), identity: it has locked the row, or more strongly than
 *					its changes do.  Before all changes; of no matter to who applies these
 *
 * identity: how the row is found.  If the definition in force has an identity
 * index (definition.h) that is not new in this transaction: v key length,
 * key bytes as in that index.  Otherwise v 0, v host bits, v size, and the
 * whole old row: any one row with these bytes will do, they are equal.
 * Which of the two is told by the first varint, as no key is empty.
 *
 * An operation longer than a piece (a row of many megabytes): OP_LONG,
 * v length, and the bytes of the operation going on through the following
 * pieces, each of which then begins with them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_RECORD_H
#define MOT_WAL_RECORD_H

#include "mot.h"
#include "access/rmgr.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "xact/logical.h"

#ifndef MOT_RMGR_ID
#define MOT_RMGR_ID 128			/* RM_EXPERIMENTAL_ID; settable at build */
#endif

extern int	mot_resource_manager_id;	/* MOT_RMGR_ID, unless it is set */

/* see format.h */
#define MOT_RECORD_FORMAT 2

#define MOT_XLOG_COMMIT 0x10
#define MOT_XLOG_MIXED	0x20
#define MOT_XLOG_PIECE	0x30
#define MOT_XLOG_FORGET 0x40
#define MOT_XLOG_START	0x50
#define MOT_XLOG_CHANGES 0x60
#define MOT_XLOG_KIND	0x70

/* with COMMIT: whoever committed may wait for a standby to have applied it (remote_apply) */
#define MOT_XLOG_REPLY	0x80

#define MOT_PIECE_SIZE (512 * 1024)

/* what each of them begins with */
typedef struct MotRecordHeader
{
	XLogRecPtr	stream;			/* 0: no pieces before this one */
	TimestampTz time;			/* COMMIT: for recovery_target_time */
} MotRecordHeader;

#define MOT_RECORD_HEADER_MAX (1 + 10 + sizeof(TimestampTz))

/* the xid of MIXED is the WAL record's own (XLogRecGetXid) */

/* write one; its length is returned */
extern int	MotRecordPutHeader(char *to, const MotRecordHeader *header);

/* Its length, or 0: *format is not known, or (if it is) the record is too short. */
extern size_t MotRecordGetHeader(const char *data, size_t len, MotRecordHeader *header, int *format);

typedef enum MotOp
{
	MOT_OP_TABLE = 1,
	MOT_OP_CREATE,
	MOT_OP_DEFINE,
	MOT_OP_INDEX,
	MOT_OP_DROP,
	MOT_OP_DROP_DATABASE,
	MOT_OP_INSERT,
	MOT_OP_UPDATE,
	MOT_OP_DELETE,
	MOT_OP_LONG,
	MOT_OP_PREPARED,
	MOT_OP_LOCK,
	MOT_OP_PREPARED_READS
} MotOp;

#define MOT_OP_IS_PREPARED(op) ((op) == MOT_OP_PREPARED || (op) == MOT_OP_PREPARED_READS)

/* one operation taken apart; pointers into the buffer given */
typedef struct MotOpData
{
	MotOp		op;
	Oid			dbid;			/* TABLE, DROP_DATABASE */
	Oid			oid;			/* TABLE: relid, INDEX: indexoid */
	const char *bytes;			/* CREATE, DEFINE: definition; INSERT: row;
								 * PREPARED: identifier */
	size_t		len;
	int			mode;			/* LOCK */
	unsigned	host_bits;		/* INSERT, UPDATE: the new row's */
	const char *key;			/* UPDATE, DELETE, LOCK: identity by key, or
								 * NULL */
	size_t		key_len;
	unsigned	old_host_bits;	/* identity by content */
	const char *old_bytes;
	size_t		old_len;
	const char *segments;		/* UPDATE */
	size_t		segments_len;
	size_t		new_len;
} MotOpData;

/*
 * Take the next operation from *p (up to end).  false at the end.  Damage
 * (lengths that run over the end, an unknown operation) sets *error and returns false.
 */
extern bool MotRecordNext(const char **p, const char *end, MotOpData *op, const char **error);

/* write operations (record.c); buf grows by what is appended */
extern void MotRecordTable(StringInfo buf, Oid dbid, Oid relid);

/* CREATE, DEFINE: a definition; PREPARED, PREPARED_READS: the identifier */
extern void MotRecordBytes(StringInfo buf, MotOp op, const void *bytes, size_t len);
extern void MotRecordOid(StringInfo buf, MotOp op, Oid oid);	/* INDEX, DROP_DATABASE;
																 * DROP with oid ignored */
extern void MotRecordInsert(StringInfo buf, unsigned host_bits, const void *row, size_t size);

/*
 * columns: old_size; less for one that changes nothing but what lies behind the columns, which
 * may have been done already where it is applied (mot_row_amend): it says all of that.
 */
extern void MotRecordUpdate(StringInfo buf, const void *key, size_t key_len,
							unsigned old_host_bits, const void *old, size_t old_size, size_t columns,
							unsigned host_bits, const void *row, size_t size);
extern void MotRecordDelete(StringInfo buf, const void *key, size_t key_len,
							unsigned old_host_bits, const void *old, size_t old_size);
extern void MotRecordLock(StringInfo buf, mot_row_mode mode, const void *key, size_t key_len,
						  unsigned old_host_bits, const void *old, size_t old_size);

/* CHANGES: what it begins with; each change; and each of its rows, whose bytes follow */
#define MOT_RECORD_STORAGE_SIZE (1 + 3 * sizeof(Oid))
#define MOT_RECORD_ROW_MAX 20

extern int	MotRecordPutStorage(char *to, const RelFileLocator *storage);
extern int	MotRecordPutLogical(char *to, const MotLogicalChange *change);
extern int	MotRecordPutRow(char *to, const MotLogicalRow *row);

/* as MotRecordGetHeader */
extern size_t MotRecordGetStorage(const char *data, size_t len, RelFileLocator *storage, int *format);

/* as MotRecordNext; rows point into the record */
extern bool MotRecordNextLogical(const char **p, const char *end, MotLogicalChange *change, const char **error);

/* Are these operations of a transaction that PREPARE TRANSACTION ends? */
extern bool MotRecordIsPrepared(const char *ops, size_t len);

/*
 * Rebuild the new row of an UPDATE from the old one: new_row has op->new_len
 * bytes.  false: the segments don't fit together (damage).
 */
extern bool MotRecordPatch(const MotOpData *op, const void *old, size_t old_size, void *new_row);

#endif							/* MOT_WAL_RECORD_H */
