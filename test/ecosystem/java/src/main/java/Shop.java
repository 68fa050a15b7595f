import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.*;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.Check;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.annotations.OnDelete;
import org.hibernate.annotations.OnDeleteAction;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.type.SqlTypes;

/** What applications do with Hibernate, each step with what has to come of it. */
public class Shop {
    @Entity(name = "Client") @Table(name = "client", uniqueConstraints = @UniqueConstraint(name = "client_email", columnNames = "email"))
    public static class Client {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Column(nullable = false, length = 100) String email;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> data = new HashMap<>();
        @JdbcTypeCode(SqlTypes.ARRAY) String[] tags = {};
        @Version int version;
        @OneToMany(mappedBy = "client", cascade = CascadeType.ALL, orphanRemoval = true) List<Invoice> invoices = new ArrayList<>();
    }

    public enum State { OPEN, PAID }

    @Entity(name = "Invoice") @Table(name = "invoice", indexes = @Index(name = "invoice_state", columnList = "state, made desc"))
    @Check(name = "total_not_negative", constraints = "total >= 0")
    public static class Invoice {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @ManyToOne(optional = false, fetch = FetchType.LAZY) @OnDelete(action = OnDeleteAction.CASCADE) Client client;
        @Enumerated(EnumType.STRING) State state = State.OPEN;
        @Column(precision = 10, scale = 2) BigDecimal total = BigDecimal.ZERO;
        Instant made = Instant.now();
        UUID token = UUID.randomUUID();
        @Lob byte[] scan;
        @ElementCollection @CollectionTable(name = "invoice_note") List<String> notes = new ArrayList<>();

        Invoice() {}
        Invoice(Client c, long t) { client = c; total = BigDecimal.valueOf(t); }
    }

    static void check(boolean right, String what) {
        if (!right)
            throw new AssertionError(what);
    }

    static boolean refused(SessionFactory f, java.util.function.Consumer<Session> work) {
        try {
            f.inTransaction(work);
        } catch (ConstraintViolationException e) {
            return true;
        } catch (PersistenceException e) {
            return e.getCause() instanceof ConstraintViolationException;
        }
        return false;
    }

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration().addAnnotatedClass(Client.class).addAnnotatedClass(Invoice.class)
            .setProperty("hibernate.connection.url", Migrate.URL).setProperty("hibernate.connection.username", "postgres")
            .setProperty("hibernate.hbm2ddl.auto", args[0]).setProperty("hibernate.jdbc.batch_size", "20");
        long before = Migrate.number("SELECT count(*) FROM pg_attribute") + Migrate.number("SELECT count(*) FROM pg_constraint");
        SessionFactory f = conf.buildSessionFactory();
        if (!args[0].equals("create"))
            check(before == Migrate.number("SELECT count(*) FROM pg_attribute") + Migrate.number("SELECT count(*) FROM pg_constraint"), "something was changed");

        f.inTransaction(s -> {
            s.createNativeMutationQuery("DELETE FROM invoice_note").executeUpdate();
            s.createMutationQuery("delete from Client").executeUpdate();
            check(s.createSelectionQuery("from Invoice", Invoice.class).getResultCount() == 0, "the foreign key has not deleted");
        });
        f.inTransaction(s -> {
            Client c = new Client();
            c.email = "anna";
            c.tags = new String[] {"a", "b"};
            c.data.put("x", List.of(1, 2));
            for (int i = 0; i < 100; i++) {
                Invoice in = new Invoice(c, i);
                in.scan = new byte[i];
                in.notes.add("note " + i);
                c.invoices.add(in);
            }
            s.persist(c);
        });
        check(refused(f, s -> { Client c = new Client(); c.email = "anna"; s.persist(c); }), "anna twice");
        check(refused(f, s -> s.persist(new Invoice(s.createSelectionQuery("from Client", Client.class).getSingleResult(), -1))), "less than nothing");
        check(refused(f, s -> s.createNativeMutationQuery("INSERT INTO invoice (client_id, total) VALUES (-1, 0)").executeUpdate()), "an invoice of nobody");

        f.inTransaction(s -> {
            List<Invoice> page = s.createSelectionQuery("from Invoice i join fetch i.client order by i.total desc", Invoice.class)
                .setFirstResult(10).setMaxResults(5).getResultList();
            check(page.size() == 5 && page.get(0).total.intValue() == 89 && page.get(0).scan.length == 89, "a page");
            check(page.get(0).client.tags[1].equals("b") && page.get(0).notes.get(0).equals("note 89"), "what belongs to it");
            Object[] sums = s.createSelectionQuery("select count(*), sum(total), max(made) from Invoice where state = OPEN", Object[].class).getSingleResult();
            check(((Long) sums[0]) == 100 && ((BigDecimal) sums[1]).intValue() == 4950, "sums");
            Invoice locked = s.find(Invoice.class, page.get(0).id, LockModeType.PESSIMISTIC_WRITE);
            locked.state = State.PAID;
            check(s.createMutationQuery("update Invoice set total = total + 1 where state = OPEN").executeUpdate() == 99, "updates");
        });

        // somebody else was first
        Session a = f.openSession(), b = f.openSession();
        a.beginTransaction();
        b.beginTransaction();
        Client mine = a.createSelectionQuery("from Client", Client.class).getSingleResult();
        b.createSelectionQuery("from Client", Client.class).getSingleResult().tags = new String[] {"theirs"};
        b.getTransaction().commit();
        mine.tags = new String[] {"mine"};
        try {
            a.getTransaction().commit();
            check(false, "an update was lost");
        } catch (OptimisticLockException e) {
            a.getTransaction().rollback();
        }
        a.close();
        b.close();
        check(Migrate.number("SELECT count(*) FROM client WHERE 'theirs' = ANY (tags) AND version = 1") == 1, "whose update is there");
        f.inTransaction(s -> s.remove(s.createSelectionQuery("from Client", Client.class).getSingleResult()));
        check(Migrate.number("SELECT (SELECT count(*) FROM invoice) + (SELECT count(*) FROM invoice_note)") == 0, "something was left");
        f.close();
        System.exit(0);
    }
}
