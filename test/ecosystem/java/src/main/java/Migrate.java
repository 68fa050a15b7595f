import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import liquibase.Liquibase;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffResult;
import liquibase.diff.DiffGeneratorFactory;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.ClassLoaderResourceAccessor;
import org.flywaydb.core.Flyway;

/** Migrate flyway|liquibase N: migrates, and N is how many changes have to come of it. */
public class Migrate {
    static final String URL = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGTCP") + "/" + System.getenv("PGDATABASE");

    static void check(boolean right, String what) {
        if (!right) {
            System.err.println(what);
            System.exit(1);
        }
    }

    static long number(String sql) throws Exception {
        try (Connection c = DriverManager.getConnection(URL, "postgres", "");
             ResultSet r = c.createStatement().executeQuery(sql)) {
            r.next();
            return r.getLong(1);
        }
    }

    static Liquibase liquibase(Connection c) throws Exception {
        var database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
        return new Liquibase("liquibase/changes.xml", new ClassLoaderResourceAccessor(), database);
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("flyway")) {
            Flyway flyway = Flyway.configure().dataSource(URL, "postgres", "").baselineOnMigrate(true).baselineVersion("0").load();
            int done = flyway.migrate().migrationsExecuted;
            check(done == Integer.parseInt(args[1]), done + " migrations were executed");
            flyway.validate();
            check(flyway.info().pending().length == 0, "some are pending");
            check(number("SELECT count(*) FROM pet p JOIN owner o ON o.id = p.owner") == number("SELECT count(*) FROM pet"), "pets of nobody");
            check(number("SELECT count(*) FROM pet WHERE lower(name) = 'rex'") == 1, "where is Rex");
        } else if (args[0].equals("liquibase")) {
            try (Connection c = DriverManager.getConnection(URL, "postgres", "")) {
                Liquibase l = liquibase(c);
                int pending = l.listUnrunChangeSets(null, null).size();
                check(pending == Integer.parseInt(args[1]), pending + " change sets are pending");
                l.update("");
                check(l.listUnrunChangeSets(null, null).isEmpty(), "some are left");
            }
            check(number("SELECT count(*) FROM booking JOIN room ON room.id = room_id WHERE storey = 0") == 50, "bookings");
        } else {
            try (Connection c = DriverManager.getConnection(URL, "postgres", ""); Connection d = DriverManager.getConnection(URL, "postgres", "")) {
                var a = liquibase(c).getDatabase();
                DiffResult diff = DiffGeneratorFactory.getInstance().compare(a, liquibase(d).getDatabase(), new CompareControl());
                check(diff.areEqual(), "a database differs from itself");
                var objects = liquibase.snapshot.SnapshotGeneratorFactory.getInstance()
                    .createSnapshot(a.getDefaultSchema(), a, new liquibase.snapshot.SnapshotControl(a));
                check(objects.get(liquibase.structure.core.ForeignKey.class).stream().anyMatch(f -> f.getName().equals("booking_room")), "no foreign key");
                check(objects.get(liquibase.structure.core.UniqueConstraint.class).stream()
                    .anyMatch(u -> u.getName().equals("one_a_day")), "no unique key");
                check(objects.get(liquibase.structure.core.PrimaryKey.class).stream().anyMatch(k -> k.getName().equals("room_pk")), "no primary key");
                check(objects.get(liquibase.structure.core.Index.class).stream().anyMatch(i -> "booking_day".equals(i.getName())), "no index");
            }
        }
        System.exit(0);
    }
}
