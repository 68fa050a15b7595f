/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What fuzzed files have in the server's place (server.c).
 *
 * An error that the server would raise ends the input, quietly; what an input has
 * allocated is freed behind it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_FUZZ_H
#define MOT_FUZZ_H

#include "postgres.h"

#include <setjmp.h>

#include "port/pg_crc32c.h"
#include "utils/memutils.h"

/* checksums fit: damage that they show gets no further in the server, and no fuzzer guesses them */
#undef EQ_CRC32C
#define EQ_CRC32C(a, b) ((void) (a), (void) (b), true)

/* (in some versions it is inline, and looks before what it is given) */
#define GetMemoryChunkContext(pointer) NULL

extern sigjmp_buf fuzz_error;

/* run it; false: it has raised an error */
#define FUZZ(code) (sigsetjmp(fuzz_error, 0) == 0 ? (code, true) : false)

extern void fuzz_free_all(void);

/* so that bytes given out are looked at */
extern void fuzz_read(const void *bytes, size_t len);

extern int	LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

#endif							/* MOT_FUZZ_H */
