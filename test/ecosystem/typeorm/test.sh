# TypeORM: synchronised schema, a second start, migrations, repositories.

work=$CACHE/shop
mkdir -p "$work"
cp "$HERE"/*.js "$HERE/package.json" "$work"
[ -d "$work/node_modules/typeorm" ] || ok "TypeORM is there" bash -c "cd '$work' && npm install --silent --no-fund --no-audit"
shop() { (cd "$work" && node shop.js "$@"); }
ok "a schema is made, and worked with" shop
ok "the second start finds nothing to change, and works" shop second
ok "a later version changes it under rows" shop later
ok "... and finds nothing to change then" shop later second
