/*-------------------------------------------------------------------------
 *
 * hugepages.c
 *	  Huge pages behind the chunks: those the administrator has reserved, and
 *	  those the kernel makes by itself.
 *
 * A look-up among millions of rows touches a handful of lines of memory, each
 * on a page of its own.  With pages of 4 KB the processor has to look up
 * nearly all of those pages in tables that are not in its caches either.  A
 * chunk of 2 MB is one huge page.
 *
 * Reserved ones (MAP_HUGETLB): mapping takes them out of the system's pool for
 * good, or fails.  They are never given back while the region stands: a page
 * that has gone back to the pool belongs to whoever asks first, and touching it
 * again would be a signal (SIGBUS) instead of an error.  There is one more way
 * to such a signal: a control group may limit huge pages, which counts them
 * when they are touched and not when they are mapped, and the limit is nothing
 * in many a container.  So the first one is touched by a call that reports
 * failure; and the host, which can find the group, compares its limit.
 *
 * Transparent ones: shared memory has them only where the administrator lets
 * it (shmem_enabled), and may lose them: giving back part of one makes small
 * pages of the rest.  There, memory goes back by whole chunks only.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "memory/memory_internal.h"

/* of all sizes that a processor may have, that of a chunk */
#define HUGE_2MB (21 << 26)

#define SYS_THP "/sys/kernel/mm/transparent_hugepage/"

/*
 * Map chunks at that address to reserved huge pages; errno says why not, and
 * then there may be nothing at all mapped there.
 */
bool
mot_huge_map(char *at, size_t length, int share)
{
	/* without MAP_NORESERVE: the pages are ours, or it fails here */
	if (mmap(at, length, PROT_READ | PROT_WRITE,
			 share |MAP_ANONYMOUS | MAP_HUGETLB | HUGE_2MB | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;

#ifdef MADV_POPULATE_WRITE
	/* EINVAL: a kernel before 5.14 does not know it */
	if (madvise(at, MOT_CHUNK_SIZE, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
	{
		munmap(at, length);
		errno = ENOMEM;
		return false;
	}
#endif
	return true;
}

/* the word in brackets of such a file, or "" */
static void
selected(const char *path, char *word, size_t size)
{
	FILE	   *file = fopen(path, "r");
	char		line[200] = "";
	char	   *from;

	word[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(line, sizeof(line), file) != NULL && (from = strchr(line, '[')) != NULL)
	{
		size_t		length = strcspn(++from, "]\n");

		if (length < size)
		{
			memcpy(word, from, length);
			word[length] = '\0';
		}
	}
	fclose(file);
}

/* does the kernel make huge pages of shared memory that it is advised about? */
bool
mot_huge_transparent(void)
{
	char		word[32];

	/*
	 * newer kernels have a setting for each size, which may refer to that for
	 * all
	 */
	selected(SYS_THP "hugepages-2048kB/shmem_enabled", word, sizeof(word));
	if (word[0] == '\0' || strcmp(word, "inherit") == 0)
		selected(SYS_THP "shmem_enabled", word, sizeof(word));
	return strcmp(word, "advise") == 0 || strcmp(word, "always") == 0 ||
		strcmp(word, "within_size") == 0 || strcmp(word, "force") == 0;
}
