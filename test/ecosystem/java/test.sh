# Flyway, Liquibase and Hibernate, each with a second start.

work=$SANDBOX/tmp/java
rm -rf "$work"
cp -r "$HERE" "$work"
ok "it builds" mvn -q -B -f "$work/pom.xml" -Dmaven.repo.local="$CACHE/m2" compile dependency:copy-dependencies -DoutputDirectory="$CACHE/lib"
run() { (cd "$work" && java -cp "target/classes:$CACHE/lib/*" "$@" 2>&1); }
ok "Flyway migrates" run Migrate flyway 2
ok "... and finds nothing to do at its second start" run Migrate flyway 0
cp "$work/src/main/resources/later/"*.sql "$work/target/classes/db/migration/"
ok "... a later version's migration is done" run Migrate flyway 1
ok "... what is there is valid" run Migrate flyway 0
ok "Liquibase updates" run Migrate liquibase 3
ok "... and finds nothing to do at its second start" run Migrate liquibase 0
ok "... finds keys, foreign keys and indexes in the catalogue" run Migrate difference
ok "Hibernate makes its schema and works" run Shop create
ok "... finds it valid at its second start, and works" run Shop validate
ok "... finds nothing to update" run Shop update
