/*-------------------------------------------------------------------------
 *
 * manifest.c
 *	  What a checkpoint consists of, and the directory it lies in.
 *
 * A checkpoint is written into a directory with a temporary name; its manifest
 * is the last file.  When all of them are on disk the directory gets its name,
 * and that is on disk before anything is told to rely on it.  So whatever has
 * a final name is complete, and what a crash leaves has a temporary one.  What
 * is to go gets a temporary name first, for the same reason.  A directory with
 * a final name in which files are missing is what a base backup copied while
 * it was being removed; an older one is looked for then.
 *
 * A name that ends with UPGRADED is a checkpoint of the cluster that this one was made
 * from by pg_upgrade, which has kept the numbers of databases, tables and their
 * storage: tools/mot_upgrade has put it here.  It has to be a final one, since the log
 * of that cluster is not here.  The first checkpoint of this one takes its files over.
 * While pg_upgrade's definitions wait for it, there is a file "awaited".
 *
 * The manifest is its fields one after the other, in the machine's byte
 * order, between a magic number and a checksum of everything before it; so it is in
 * all formats.  The magic number ends with the format's (format.h); one that would be
 * ours in the other byte order is another machine's.  As of format 2 what kind of machine
 * that was follows, and the ID of our resource manager in the log.  As of format 3 tables that
 * have been given up stand at the end, and what is to be put aside.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "format.h"
#include "port/pg_bswap.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/spill.h"

#define MANIFEST_MAGIC		UINT64CONST(0x33305446494e414d) /* "MANIFT03" */
#define MANIFEST_WORD		UINT64CONST(0x5446494e414d)
#define MANIFEST_FORMAT		3
#define MANIFEST_NAME		"manifest"
#define OPEN_PATH			MOT_DIRECTORY "/open"
#define AWAITED_PATH		MOT_DIRECTORY "/awaited"
#define TEMPORARY			".tmp"
#define DAMAGED				".damaged"
#define UPGRADED			".upgraded"
#define NAME_DIGITS			24

typedef struct Output
{
	const char *path;
	int			fd;
	char	   *buffer;
	Size		used;
	off_t		written;
	pg_crc32c	crc;
} Output;

typedef struct Input
{
	const char *path;
	const char *start;
	const char *p;
	const char *end;
} Input;

#define OUTPUT_SIZE (256 * 1024)

/* what the bytes in the files depend on; without padding */
typedef struct Machine
{
	uint32		block;
	uint16		align;
	uint16		datum;
} Machine;

static const Machine this_machine = {BLCKSZ, MAXIMUM_ALIGNOF, SIZEOF_DATUM};

/* a directory with a final name */
typedef struct Candidate
{
	TimeLineID	tli;
	XLogRecPtr	lsn;
	bool		upgraded;		/* of another cluster's history, before ours
								 * began */
} Candidate;

static void damaged_manifest(Input *in, const char *what) pg_attribute_noreturn();
static void other_machine(Input *in, const char *why) pg_attribute_noreturn();

/* ------------------------------------------------------------- directories */

char *
MotCheckpointDirectory(TimeLineID tli, XLogRecPtr lsn, bool temporary)
{
	return psprintf(MOT_DIRECTORY "/%08X%08X%08X%s", tli, LSN_FORMAT_ARGS(lsn),
					temporary ? TEMPORARY : "");
}

bool
MotDirectoryExists(void)
{
	struct stat st;

	return stat(MOT_DIRECTORY, &st) == 0;
}

/* $PGDATA/mot */
void
MotDirectoryMake(void)
{
	if (MotFileMakeDirectory(MOT_DIRECTORY, true))
		fsync_fname(".", true);
}

static char *
candidate_path(const Candidate *candidate)
{
	return psprintf("%s%s", MotCheckpointDirectory(candidate->tli, candidate->lsn, false),
					candidate->upgraded ? UPGRADED : "");
}

/* A new directory with the temporary name; what an earlier attempt left there goes. */
char *
MotDirectoryBegin(TimeLineID tli, XLogRecPtr lsn)
{
	char	   *path = MotCheckpointDirectory(tli, lsn, true);
	struct stat st;

	MotDirectoryMake();
	if (stat(path, &st) == 0)
		MotDirectoryRemove(path);
	(void) MotFileMakeDirectory(path, false);
	return path;
}

/* All its files are on disk: give the directory its name. */
void
MotDirectoryFinish(TimeLineID tli, XLogRecPtr lsn)
{
	char	   *from = MotCheckpointDirectory(tli, lsn, true);
	char	   *to = MotCheckpointDirectory(tli, lsn, false);

	fsync_fname(from, true);
	(void) MotFileRename(from, to, ERROR);
	fsync_fname(MOT_DIRECTORY, true);
	pfree(from);
	pfree(to);
}

/* It and the files in it; what cannot be removed is reported and left. */
void
MotDirectoryRemove(const char *path)
{
	DIR		   *dir = AllocateDir(path);
	struct dirent *de;

	while ((de = ReadDirExtended(dir, path, LOG)) != NULL)
	{
		char	   *file;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		file = psprintf("%s/%s", path, de->d_name);
		MotFileRemove(file);
		pfree(file);
	}
	if (dir != NULL)
		FreeDir(dir);
	if (rmdir(path) != 0)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove directory \"%s\": %m", path)));
}

/* What was damaged, and ignored: not looked at any more, nor removed. */
void
MotDirectoryPutAside(const char *path, int elevel)
{
	char	   *aside = psprintf("%s" DAMAGED, path);

	if (MotFileRename(path, aside, elevel))
	{
		fsync_fname(MOT_DIRECTORY, true);
		ereport(LOG,
				(errmsg("checkpoint with damaged memory-optimized tables was put aside as \"%s\"",
						aside)));
	}
	pfree(aside);
}

static bool
parse_name(const char *name, Candidate *candidate)
{
	uint32		hi,
				lo;

	if (strspn(name, "0123456789ABCDEF") != NAME_DIGITS ||
		sscanf(name, "%08X%08X%08X", &candidate->tli, &hi, &lo) != 3)
		return false;
	candidate->upgraded = strcmp(name + NAME_DIGITS, UPGRADED) == 0;
	if (name[NAME_DIGITS] != '\0' && !candidate->upgraded)
		return false;
	candidate->lsn = (uint64) hi << 32 | lo;
	return true;
}

/*
 * Everything but the checkpoints from keep_from on.  (Only a server with a
 * complete checkpoint at keep_from or later calls this.)
 */
void
MotManifestRemoveOthers(XLogRecPtr keep_from)
{
	DIR		   *dir = AllocateDir(MOT_DIRECTORY);
	struct dirent *de;
	bool		aside = false;

	while ((de = ReadDirExtended(dir, MOT_DIRECTORY, LOG)) != NULL)
	{
		Candidate	candidate;
		char	   *path;

		if (parse_name(de->d_name, &candidate))
		{
			char	   *temporary;

			if (candidate.lsn >= keep_from)
				continue;
			path = candidate_path(&candidate);
			temporary = MotCheckpointDirectory(candidate.tli, candidate.lsn, true);
			if (candidate.lsn == MotStatePreserved())
			{
				MotDirectoryPutAside(path, LOG);
				aside = true;
			}
			else if (MotFileRename(path, temporary, LOG))
				MotDirectoryRemove(temporary);
		}
		else if (strlen(de->d_name) == NAME_DIGITS + strlen(TEMPORARY) &&
				 strcmp(de->d_name + NAME_DIGITS, TEMPORARY) == 0)
		{
			path = psprintf("%s/%s", MOT_DIRECTORY, de->d_name);
			MotDirectoryRemove(path);
		}
	}
	if (dir != NULL)
		FreeDir(dir);
	/* (a standby may give up more later) */
	if (aside)
		MotStatePreserve(InvalidXLogRecPtr);
	if (keep_from != InvalidXLogRecPtr)
		MotFileRemove(AWAITED_PATH);
	MotTrailRemove(RecoveryInProgress() ? keep_from : PG_UINT64_MAX);
}

/* ------------------------------------------------------------- open marker */

bool
MotOpenMarkerExists(void)
{
	return MotFileSize(OPEN_PATH, NULL);
}

static void
set_marker(const char *path)
{
	int			fd = MotFileCreate(path, 0);

	MotFileSync(fd, path);
	MotFileClose(fd, path);
	fsync_fname(MOT_DIRECTORY, true);
}

void
MotOpenMarkerSet(void)
{
	set_marker(OPEN_PATH);
}

void
MotOpenMarkerClear(void)
{
	(void) durable_unlink(OPEN_PATH, LOG);
}

/* --------------------------------------------------------- awaited marker */

/*
 * pg_upgrade has made tables whose rows mot_upgrade is to bring.  Until it has, and has
 * removed this, nobody takes them for empty, and no checkpoint is written beside which
 * theirs would have no place.
 */
void
MotAwaitedMarkerSet(void)
{
	if (MotFileSize(AWAITED_PATH, NULL))
		return;
	MotDirectoryMake();
	set_marker(AWAITED_PATH);
}

bool
MotRowsAwaited(void)
{
	return !mot_ignore_damaged && MotFileSize(AWAITED_PATH, NULL);
}

/* ------------------------------------------------------------------- bytes */

static void
flush_output(Output *out)
{
	MotFileWrite(out->fd, out->path, out->buffer, out->used, out->written);
	out->written += out->used;
	out->used = 0;
}

static void
put(Output *out, const void *bytes, Size len)
{
	COMP_CRC32C(out->crc, bytes, len);
	while (len > 0)
	{
		Size		n = Min(len, OUTPUT_SIZE - out->used);

		memcpy(out->buffer + out->used, bytes, n);
		out->used += n;
		bytes = (const char *) bytes + n;
		len -= n;
		if (out->used == OUTPUT_SIZE)
			flush_output(out);
	}
}

#define PUT(out, value) put(out, &(value), sizeof(value))

static void
damaged_manifest(Input *in, const char *what)
{
	MotFileRaiseDamaged(in->path, in->p - in->start, what);
}

static void *
get_bytes(Input *in, Size len)
{
	const char *p = in->p;

	if (len > (Size) (in->end - p))
		damaged_manifest(in, "a length goes beyond the end");
	in->p += len;
	return unconstify(char *, p);
}

static void
get(Input *in, void *bytes, Size len)
{
	memcpy(bytes, get_bytes(in, len), len);
}

#define GET(in, value) get(in, &(value), sizeof(value))

/* --------------------------------------------------------------- its fields */

/* written, or read if "out" is NULL */
#define FIELD(value) ((out) != NULL ? PUT(out, value) : GET(in, value))

/* An array behind its length; each of its elements takes at least so many bytes. */
static void *
array(Output *out, Input *in, void *elements, int *n, Size size, Size least)
{
	FIELD(*n);
	if (out != NULL)
		return elements;
	if (*n < 0 || (Size) *n > (Size) (in->end - in->p) / least)
		damaged_manifest(in, "a count goes beyond the end");
	return palloc0(Max(*n, 1) * size);
}

/* Bytes behind their length; those that are read stay where they are. */
static char *
run(Output *out, Input *in, char *bytes, size_t *len)
{
	FIELD(*len);
	if (out == NULL)
		return get_bytes(in, *len);
	put(out, bytes, *len);
	return bytes;
}

/* What follows what the manifest says of itself. */
static void
transfer(Output *out, Input *in, MotManifest *m, int format)
{
	FIELD(m->system_identifier);
	FIELD(m->lsn);
	FIELD(m->tli);
	FIELD(m->redo);
	FIELD(m->time);
	FIELD(m->final);
	FIELD(m->rows);
	FIELD(m->bytes);
	m->tables = array(out, in, m->tables, &m->ntables, sizeof(MotManifestTable), 2 * sizeof(Oid));
	for (int i = 0; i < m->ntables; i++)
	{
		MotManifestTable *t = &m->tables[i];

		FIELD(t->dbid);
		FIELD(t->relid);
		FIELD(t->rows);
		t->definition = run(out, in, t->definition, &t->definition_len);
		t->files = array(out, in, t->files, &t->nfiles, sizeof(MotManifestFile), sizeof(uint32));
		for (int j = 0; j < t->nfiles; j++)
		{
			t->files[j].dbid = t->dbid;
			t->files[j].relid = t->relid;
			FIELD(t->files[j].part);
			FIELD(t->files[j].rows);
			FIELD(t->files[j].bytes);
			FIELD(t->files[j].crc);
		}
	}
	m->indoubt = array(out, in, m->indoubt, &m->nindoubt, sizeof(MotManifestInDoubt), sizeof(TransactionId));
	for (int i = 0; i < m->nindoubt; i++)
	{
		FIELD(m->indoubt[i].xid);
		FIELD(m->indoubt[i].lsn);
		m->indoubt[i].ops = run(out, in, m->indoubt[i].ops, &m->indoubt[i].len);
	}
	if (format < 3)
		return;
	m->given_up = array(out, in, m->given_up, &m->ngiven_up, sizeof(MotManifestGivenUp), 2 * sizeof(Oid));
	for (int i = 0; i < m->ngiven_up; i++)
	{
		FIELD(m->given_up[i].dbid);
		FIELD(m->given_up[i].relid);
		m->given_up[i].why = run(out, in, m->given_up[i].why, &m->given_up[i].len);
	}
	FIELD(m->preserve);
}

void
MotManifestWrite(const char *dir, MotManifest *m, bool lasting)
{
	Output		out = {0};
	uint64		magic = MANIFEST_MAGIC;
	pg_crc32c	crc;

	out.path = psprintf("%s/%s", dir, MANIFEST_NAME);
	out.buffer = palloc(OUTPUT_SIZE);
	INIT_CRC32C(out.crc);
	out.fd = MotFileCreate(out.path, O_EXCL);

	PUT(&out, magic);
	PUT(&out, this_machine);
	PUT(&out, mot_resource_manager_id);
	transfer(&out, NULL, m, MANIFEST_FORMAT);
	PUT(&out, magic);
	crc = out.crc;
	FIN_CRC32C(crc);
	PUT(&out, crc);
	flush_output(&out);

	if (lasting)
		MotFileSync(out.fd, out.path);
	MotFileClose(out.fd, out.path);
	pfree(out.buffer);
}

/* ----------------------------------------------------------------- reading */

static void
other_machine(Input *in, const char *why)
{
	ereport(ERROR,
			(errcode(MOT_FORMAT_ERRCODE),
			 errmsg("checkpoint file \"%s\" is of another kind of machine", in->path),
			 errdetail("%s.", why),
			 errhint("Files cannot be moved between such machines; pg_dump and pg_restore can move the tables.")));
}

/* 0: it is none */
static int
format_of(uint64 magic)
{
	int			tens = (int) (magic >> 48 & 0xff) - '0';
	int			ones = (int) (magic >> 56) - '0';

	if ((magic & UINT64CONST(0xffffffffffff)) != MANIFEST_WORD || tens < 0 || tens > 9 || ones < 0 || ones > 9)
		return 0;
	return 10 * tens + ones;
}

static MotManifest *
parse_manifest(Input *in)
{
	MotManifest *m = palloc0(sizeof(MotManifest));
	uint64		magic;
	uint64		begins;
	int			format;
	Machine		machine = this_machine;
	pg_crc32c	crc;
	pg_crc32c	stored;

	if (in->end - in->p < (ptrdiff_t) (2 * sizeof(magic) + sizeof(stored)))
		damaged_manifest(in, "the file ends here");
	crc = MotFileChecksum(in->start, in->end - in->start - sizeof(stored));
	memcpy(&stored, in->end - sizeof(stored), sizeof(stored));
	memcpy(&magic, in->p, sizeof(magic));
	if (format_of(pg_bswap64(magic)) > 0 && EQ_CRC32C(crc, pg_bswap32(stored)))
		other_machine(in, "Its byte order is the opposite of this one's");
	if (!EQ_CRC32C(crc, stored))
		damaged_manifest(in, "checksum does not match");
	in->end -= sizeof(stored);

	GET(in, begins);
	format = format_of(begins);
	if (format == 0)
		damaged_manifest(in, "it is no manifest");
	if (format > MANIFEST_FORMAT)
		MotRaiseFormat(psprintf("checkpoint file \"%s\"", in->path), format, MANIFEST_FORMAT);
	m->rmgr_id = MOT_RMGR_ID;
	if (format > 1)
	{
		GET(in, machine);
		GET(in, m->rmgr_id);
	}
	if (memcmp(&machine, &this_machine, sizeof(machine)) != 0)
		other_machine(in, psprintf("Its blocks have %u bytes, alignment is to %u, and words have %u; here it is %u, %u and %u",
								   machine.block, machine.align, machine.datum,
								   this_machine.block, this_machine.align, this_machine.datum));
	transfer(NULL, in, m, format);
	GET(in, magic);
	if (magic != begins || in->p != in->end)
		damaged_manifest(in, "the end is not where it should be");
	return m;
}

/* NULL: a file is missing, its name is in *missing (the caller looks for an older checkpoint) */
static MotManifest *
read_manifest(const char *dir, const Candidate *candidate, char **missing)
{
	Input		in = {0};
	MotManifest *m;
	uint64		size;

	*missing = NULL;
	in.path = psprintf("%s/%s", dir, MANIFEST_NAME);
	if (!MotFileSize(in.path, &size))
	{
		*missing = pstrdup(in.path);
		ereport(LOG,
				(errmsg("checkpoint file \"%s\" is missing", in.path)));
		return NULL;
	}
	/* redo in doubt can be more than one would have in memory */
	if (size > 0)
	{
		in.start = in.p = MotSpillMap(in.path, size);
		MotSpillUnmapLater(CurrentMemoryContext, in.start, size);
		in.end = in.start + size;
	}
	m = parse_manifest(&in);

	if (m->system_identifier != GetSystemIdentifier() && !(candidate != NULL && candidate->upgraded))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("checkpoint file \"%s\" belongs to another database system", in.path),
				 errdetail("Its system identifier is %llu, this server's is %llu.",
						   (unsigned long long) m->system_identifier,
						   (unsigned long long) GetSystemIdentifier()),
				 errhint(MOT_DAMAGE_HINT)));
	if (candidate == NULL)
		return m;
	if (m->tli != candidate->tli || m->lsn != candidate->lsn)
		MotRaiseDamage("checkpoint file \"%s\" belongs to another checkpoint", in.path);
	if (candidate->upgraded && !m->final)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("checkpoint \"%s\" was not made as its server was shut down", dir),
				 errdetail("Later changes are in the log of the old cluster only."),
				 errhint("Start and stop the old cluster, and upgrade it anew.")));

	for (int i = 0; i < m->ntables; i++)
		for (int j = 0; j < m->tables[i].nfiles; j++)
		{
			MotManifestFile *f = &m->tables[i].files[j];
			char	   *path = MotRowFilePath(dir, f->dbid, f->relid, f->part);

			if (!MotFileSize(path, NULL))
			{
				*missing = path;
				ereport(LOG,
						(errmsg("checkpoint file \"%s\" is missing", path)));
				return NULL;
			}
			pfree(path);
		}
	return m;
}

/* Of a directory that is no checkpoint: leftout.c. */
MotManifest *
MotManifestRead(const char *dir)
{
	char	   *missing;
	MotManifest *m = read_manifest(dir, NULL, &missing);

	if (m == NULL)
		MotRaiseDamage("checkpoint file \"%s\" is missing", missing);
	return m;
}

/* With mot.ignore_damaged, a damaged manifest counts as none: all its tables are missing then. */
static MotManifest *
read_manifest_or_ignore(const char *dir, const Candidate *candidate, char **missing)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	MotManifest *volatile m = NULL;

	if (!mot_ignore_damaged)
		return read_manifest(dir, candidate, missing);

	PG_TRY();
	{
		m = read_manifest(dir, candidate, missing);
		if (m == NULL)
			MotStatePreserve(candidate->lsn);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (geterrcode() == MOT_FORMAT_ERRCODE)
			PG_RE_THROW();
		edata = MotErrorTake(oldcxt);
		MotStatePreserve(candidate->lsn);
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("%s", edata->message),
				 errdetail("Going on without it, as mot.ignore_damaged says.")));
		FreeErrorData(edata);
	}
	PG_END_TRY();
	*missing = NULL;
	return m;
}

/* ------------------------------------------------------------ which is newest */

static List *
list_candidates(void)
{
	List	   *list = NIL;
	DIR		   *dir = AllocateDir(MOT_DIRECTORY);
	struct dirent *de;

	if (dir == NULL && errno == ENOENT)
		return NIL;
	while ((de = ReadDir(dir, MOT_DIRECTORY)) != NULL)
	{
		Candidate  *candidate = palloc(sizeof(Candidate));

		if (parse_name(de->d_name, candidate))
			list = lappend(list, candidate);
	}
	FreeDir(dir);
	return list;
}

static int
newer_first(const ListCell *a, const ListCell *b)
{
	const Candidate *x = lfirst(a);
	const Candidate *y = lfirst(b);

	if (x->lsn != y->lsn)
		return x->lsn > y->lsn ? -1 : 1;
	return x->tli == y->tli ? 0 : (x->tli > y->tli ? -1 : 1);
}

/*
 * What is other in this cluster.  pg_upgrade has brought all that the catalogue says of
 * rows, in the words of this release of the server.
 */
static void
adopt(MotManifest *m)
{
	m->rmgr_id = mot_resource_manager_id;
	m->preserve = InvalidXLogRecPtr;
	for (int i = 0; i < m->ntables; i++)
		m->tables[i].definition = MotDefinitionUnconditional(m->tables[i].definition,
															 m->tables[i].definition_len);
}

/* The one that the newest checkpoint says was to be put aside behind it, if it is still there. */
void
MotManifestPutAside(XLogRecPtr lsn)
{
	foreach_ptr(Candidate, candidate, list_candidates())
	{
		if (candidate->lsn == lsn)
			MotDirectoryPutAside(candidate_path(candidate), LOG);
	}
}

static bool
in_history(const Candidate *candidate, List *history)
{
	foreach_ptr(TimeLineHistoryEntry, entry, history)
	{
		if (entry->tli == candidate->tli)
			return XLogRecPtrIsInvalid(entry->end) || candidate->lsn <= entry->end;
	}
	return false;
}

/*
 * The newest complete checkpoint that belongs to the history of timeline tli,
 * with its directory in *directory; NULL: there never was one.  An incomplete
 * one without an older one is damage as any other, and so is one of another
 * history.
 */
MotManifest *
MotManifestNewest(TimeLineID tli, char **directory)
{
	List	   *candidates = list_candidates();
	List	   *history;
	char	   *first_missing = NULL;
	char	   *elsewhere = NULL;
	bool		newest = true;

	if (candidates == NIL)
		return NULL;
	list_sort(candidates, newer_first);
	history = readTimeLineHistory(tli);

	foreach_ptr(Candidate, candidate, candidates)
	{
		char	   *dir = candidate_path(candidate);
		MotManifest *m;
		char	   *missing;

		if (!candidate->upgraded && !in_history(candidate, history))
		{
			ereport(LOG,
					(errmsg("passed over checkpoint \"%s\" of memory-optimized tables: it is not in the history of timeline %u",
							dir, tli)));
			if (elsewhere == NULL)
				elsewhere = dir;
			continue;
		}
		m = read_manifest_or_ignore(dir, candidate, &missing);
		if (m != NULL)
		{
			/*
			 * a newer one was written after it: what it was final for has
			 * gone on
			 */
			m->final &= newest;
			if (candidate->upgraded)
				adopt(m);
			*directory = dir;
			return m;
		}
		newest = false;
		if (first_missing == NULL)
			first_missing = missing;
	}
	if (first_missing != NULL)
		MotRaiseDamage("checkpoint file \"%s\" is missing, and there is no older checkpoint of memory-optimized tables",
					   first_missing);

	/*
	 * Whatever brought the data directory here (a copy, a rewound primary)
	 * comes with a checkpoint of its own history.  To go on as if there had
	 * never been one would be to start without the tables.
	 */
	if (elsewhere != NULL && !mot_ignore_damaged)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("no checkpoint of memory-optimized tables is in the history of timeline %u", tli),
				 errdetail("The newest one found is \"%s\".", elsewhere),
				 errhint(MOT_DAMAGE_HINT)));
	return NULL;
}
