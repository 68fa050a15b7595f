# The extension module, built with PGXS.  Use it through the Makefile.

MODULE_big = mot
EXTENSION = mot
DATA = $(wildcard mot--*.sql)
SCRIPTS = tools/mot_upgrade
PGFILEDESC = "mot - memory-optimized tables"

# The engine knows no PostgreSQL: it is compiled without the server's headers.
ENGINE_OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/engine/*.c src/engine/*/*.c)))
# (test/module: functions that only tests declare, of what SQL cannot see.)
SERVER_OBJS = $(patsubst %.c,%.o,$(sort $(filter-out src/engine/%,$(wildcard src/*.c src/*/*.c src/*/*/*.c test/module/*.c))))
OBJS = $(ENGINE_OBJS) $(SERVER_OBJS)

# One test a file; each leaves the database as it found it.
REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=mot
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ISOLATION_OPTS = --load-extension=mot

# Only what the server has to find is visible outside mot.so.  (PostgreSQL 15
# has an empty PGDLLEXPORT on this platform; later ones set it themselves.)
VISIBILITY = -fvisibility=hidden
EXPORT = -DPGDLLEXPORT='__attribute__((visibility("default")))'

# unused-parameter, sign-compare, missing-field-initializers and clobbered
# are off because the server's own headers and macros trip over them.
WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wno-clobbered $(WERROR)

TEST_BUILD = $(if $(MOT_STOP_POINTS),-DMOT_STOP_POINTS) $(if $(MOT_FAULTS),-DMOT_FAULTS)

PG_CPPFLAGS = -I$(srcdir)/src $(EXPORT) $(TEST_BUILD)
PG_CFLAGS = $(VISIBILITY) $(WARNINGS)
SHLIB_LINK = -lhwloc -lnuma -lpthread

# No bitcode: nothing of ours can be inlined into the server's compiled
# expressions, and so the build needs no clang.
override with_llvm := no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Our own rules: the server's know no header dependencies on Debian, and would
# give the engine the server's include directories.
# (A comment says where control falls through, which from 19 on its flags do not take.)
FALLTHROUGH = -Wimplicit-fallthrough=3
ENGINE_COMPILE = $(CC) $(CFLAGS) $(FALLTHROUGH) -std=gnu11 -Wno-declaration-after-statement \
	$(TEST_BUILD) -I$(srcdir)/src -I$(srcdir)/src/engine
SERVER_COMPILE = $(CC) $(CFLAGS) $(FALLTHROUGH) $(CPPFLAGS)

$(ENGINE_OBJS): %.o: %.c .buildflags
	$(ENGINE_COMPILE) $(CFLAGS_SL) -MMD -MP -c -o $@ $<

$(SERVER_OBJS): %.o: %.c .buildflags
	$(SERVER_COMPILE) $(CFLAGS_SL) -MMD -MP -c -o $@ $<

# COVERAGE="src/wal ...": these rooms count with gcov which lines are run (test/coverage/run).
ifneq ($(COVERAGE),)
$(filter $(COVERAGE:%=%/%),$(OBJS)): CFLAGS += -O0 --coverage
SHLIB_LINK += --coverage
endif

-include $(OBJS:.o=.d)

# Changes when another server or other flags are asked for, and then
# everything is compiled again.
.PHONY: force
.buildflags: force
	@printf '%s\n' '$(subst ','\'',$(ENGINE_COMPILE) | $(SERVER_COMPILE))' \
		'$(shell $(PG_CONFIG) --version)' >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi

# A room that was added or removed changes what is linked.
mot.so: .objects
.objects: force
	@echo '$(OBJS)' >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
