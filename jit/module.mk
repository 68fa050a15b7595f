# The compiler for statements, mot_jit.so: built with PGXS and the LLVM that
# the server's own JIT uses.  Use it through the Makefile one level up.

MODULE_big = mot_jit
PGFILEDESC = "mot_jit - compiled statements for mot"

JIT_OBJS = $(patsubst %.c,%.o,$(sort $(wildcard *.c)))
OBJS = $(JIT_OBJS) errors.o

VISIBILITY = -fvisibility=hidden
EXPORT = -DPGDLLEXPORT='__attribute__((visibility("default")))'
WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wno-clobbered $(WERROR)

override with_llvm := no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
PG_CPPFLAGS = -I. -I../src $(EXPORT)
PG_CFLAGS = $(VISIBILITY) $(WARNINGS)
SHLIB_LINK = $(shell $(LLVM_CONFIG) --ldflags --libs)
include $(PGXS)

LLVM_INCLUDE = -isystem $(shell $(LLVM_CONFIG) --includedir)
JIT_COMPILE = $(CC) $(CFLAGS) $(CPPFLAGS) $(LLVM_INCLUDE)
# what is C++ in it needs none of the server's headers
ERRORS_COMPILE = $(CXX) $(filter-out -Wdeclaration-after-statement,$(CXXFLAGS)) -std=c++17 -fno-exceptions -fno-rtti \
	$(VISIBILITY) -Wall -Wextra $(WERROR) $(LLVM_INCLUDE)

$(JIT_OBJS): %.o: %.c .buildflags
	$(JIT_COMPILE) $(CFLAGS_SL) -MMD -MP -c -o $@ $<

errors.o: errors.cpp .buildflags
	$(ERRORS_COMPILE) $(CFLAGS_SL) -MMD -MP -c -o $@ $<

-include $(OBJS:.o=.d)

.PHONY: force
.buildflags: force
	@printf '%s\n' '$(subst ','\'',$(JIT_COMPILE) | $(ERRORS_COMPILE))' \
		'$(shell $(PG_CONFIG) --version)' '$(shell $(LLVM_CONFIG) --version)' >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi

mot_jit.so: .objects
.objects: force
	@echo '$(OBJS)' >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
