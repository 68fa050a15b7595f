/*-------------------------------------------------------------------------
 *
 * errors.cpp
 *	  What LLVM does when it cannot go on.
 *
 * LLVM reports some errors by ending the process, and C++ code reports a lack
 * of memory by an exception that nobody here catches.  As in the server's own
 * JIT, both are turned into a FATAL error of this session, because nothing is
 * known about the state LLVM is in then.  The C interface has no access to the
 * handlers; this file is C++ for them, and for nothing else.
 *
 * The handlers are in place only while LLVM runs, so that neither the
 * server's JIT, which sets its own in its own sections, nor other C++ code in
 * the process meets ours.
 *
 *-------------------------------------------------------------------------
 */
#include <new>

#include <llvm/Support/ErrorHandling.h>

extern "C"
{
#include "errors.h"
}

static std::new_handler previous;

static void
no_memory()
{
	mot_jit_fatal(nullptr, 1);
}

static void
llvm_no_memory(void *, const char *reason, bool)
{
	mot_jit_fatal(reason, 1);
}

static void
llvm_fatal(void *, const char *reason, bool)
{
	mot_jit_fatal(reason, 0);
}

void
mot_jit_enter()
{
	previous = std::set_new_handler(no_memory);
	llvm::install_bad_alloc_error_handler(llvm_no_memory);
	llvm::install_fatal_error_handler(llvm_fatal);
}

void
mot_jit_leave()
{
	llvm::remove_fatal_error_handler();
	llvm::remove_bad_alloc_error_handler();
	std::set_new_handler(previous);
}
