# GORM: AutoMigrate twice, associations, upserts, locks.

work=$SANDBOX/tmp/gorm
rm -rf "$work"
cp -r "$HERE" "$work"
export GOPATH=$CACHE/path GOCACHE=$CACHE/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local GONOSUMDB='*' GONOSUMCHECK=1 GOFLAGS=-mod=mod GOTELEMETRY=off
ok "it builds" bash -c "cd '$work' && go build -o shop ."
ok "a schema is made, and worked with" "$work/shop"
ok "the second start finds nothing to change, and works" env SECOND=yes "$work/shop"
ok "a later version adds a column and an index under rows" env LATER=yes "$work/shop"
ok "... and finds nothing to change then" env LATER=yes SECOND=yes "$work/shop"
