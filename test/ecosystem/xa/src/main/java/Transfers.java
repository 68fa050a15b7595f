import com.arjuna.ats.arjuna.common.CoreEnvironmentBean;
import com.arjuna.ats.arjuna.common.ObjectStoreEnvironmentBean;
import com.arjuna.ats.arjuna.common.RecoveryEnvironmentBean;
import com.arjuna.ats.arjuna.recovery.RecoveryManager;
import com.arjuna.ats.arjuna.recovery.RecoveryModule;
import com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule;
import com.arjuna.ats.jta.common.JTAEnvironmentBean;
import com.arjuna.ats.jta.recovery.XAResourceRecoveryHelper;
import com.arjuna.common.internal.util.propertyservice.BeanPopulator;
import jakarta.transaction.TransactionManager;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.XAConnection;
import javax.transaction.xa.XAResource;
import org.postgresql.xa.PGXADataSource;

/*
 * Transfers between accounts on two servers, each in a transaction of Narayana's over both.
 *
 *	Transfers STORE PORT PORT load FIRST SECONDS	prints "done N" when transfer N has been committed
 *	Transfers STORE PORT PORT recover				ends what was begun, as a manager that starts again does
 */
public class Transfers {
	static final int ACCOUNTS = 500;
	static final int THREADS = 6;
	static PGXADataSource[] servers = new PGXADataSource[2];

	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 2; i++) {
			servers[i] = new PGXADataSource();
			servers[i].setServerNames(new String[] {"127.0.0.1"});
			servers[i].setPortNumbers(new int[] {Integer.parseInt(args[1 + i])});
			servers[i].setDatabaseName("postgres");
			servers[i].setUser("postgres");
			servers[i].setSocketTimeout(20);
		}
		configure(args[0]);
		if (args[3].equals("load"))
			load(Long.parseLong(args[4]), Integer.parseInt(args[5]));
		else
			recover();
		System.exit(0);
	}

	static void configure(String store) throws Exception {
		for (String name : new String[] {"default", "communicationStore", "stateStore"})
			BeanPopulator.getNamedInstance(ObjectStoreEnvironmentBean.class, name).setObjectStoreDir(store);
		BeanPopulator.getDefaultInstance(ObjectStoreEnvironmentBean.class).setObjectStoreDir(store);
		BeanPopulator.getDefaultInstance(CoreEnvironmentBean.class).setNodeIdentifier("1");
		RecoveryEnvironmentBean recovery = BeanPopulator.getDefaultInstance(RecoveryEnvironmentBean.class);
		recovery.setRecoveryModuleClassNames(List.of("com.arjuna.ats.internal.arjuna.recovery.AtomicActionRecoveryModule",
			"com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule"));
		recovery.setRecoveryBackoffPeriod(1);
		recovery.setExpiryScannerClassNames(List.of());
		JTAEnvironmentBean jta = BeanPopulator.getDefaultInstance(JTAEnvironmentBean.class);
		jta.setXaRecoveryNodes(List.of("1"));
		jta.setXaResourceOrphanFilterClassNames(List.of(
			"com.arjuna.ats.internal.jta.recovery.arjunacore.JTATransactionLogXAResourceOrphanFilter",
			"com.arjuna.ats.internal.jta.recovery.arjunacore.JTANodeNameXAResourceOrphanFilter"));
		jta.setOrphanSafetyInterval(1000);
	}

	/* a thread's two connections, made anew after an error */
	static class Pair {
		XAConnection[] xa = new XAConnection[2];
		Connection[] connection = new Connection[2];

		Pair() throws Exception {
			for (int i = 0; i < 2; i++) {
				xa[i] = servers[i].getXAConnection();
				connection[i] = xa[i].getConnection();
				try (Statement s = connection[i].createStatement()) {
					s.execute("SET lock_timeout = '300ms'");
				}
			}
		}

		void close() {
			for (XAConnection x : xa)
				try {
					if (x != null)
						x.close();
				} catch (Exception e) {
					// it is broken
				}
		}
	}

	static void transfer(TransactionManager tm, Pair pair, long number) throws Exception {
		ThreadLocalRandom random = ThreadLocalRandom.current();
		long amount = random.nextLong(-100, 100);

		tm.begin();
		try {
			for (int i = 0; i < 2; i++)
				tm.getTransaction().enlistResource(pair.xa[i].getXAResource());
			/* the kinds of tables and the servers in one order, so there is no deadlock that nobody sees */
			for (int i = 0; i < 2; i++) {
				for (String table : new String[] {"account", "cold"})
					try (PreparedStatement s = pair.connection[i].prepareStatement(
							"UPDATE " + table + " SET balance = balance + ? WHERE id = ?")) {
						s.setLong(1, i == 0 ? amount : -amount);
						s.setInt(2, random.nextInt(ACCOUNTS) + 1);
						if (s.executeUpdate() != 1)
							throw new IllegalStateException("no account");
					}
				try (PreparedStatement s = pair.connection[i].prepareStatement("INSERT INTO transfer VALUES (?, ?)")) {
					s.setLong(1, number);
					s.setLong(2, amount);
					s.executeUpdate();
				}
			}
			if (number % 50 == 0)
				throw new IllegalStateException("changed my mind");
		} catch (Exception e) {
			tm.rollback();
			throw e;
		}
		tm.commit();
	}

	static void load(long first, int seconds) throws Exception {
		TransactionManager tm = com.arjuna.ats.jta.TransactionManager.transactionManager();
		AtomicLong numbers = new AtomicLong(first);
		long end = System.nanoTime() + seconds * 1_000_000_000L;
		List<Thread> threads = new ArrayList<>();

		for (int i = 0; i < THREADS; i++) {
			Thread thread = new Thread(() -> {
				Pair pair = null;
				while (System.nanoTime() < end) {
					long number = numbers.incrementAndGet();
					try {
						if (pair == null)
							pair = new Pair();
						transfer(tm, pair, number);
						/* one write, so none is torn by a kill */
						synchronized (System.out) {
							System.out.write(("done " + number + "\n").getBytes());
							System.out.flush();
						}
					} catch (Exception e) {
						System.err.println(number + ": " + e);
						if (pair != null && !(e instanceof IllegalStateException)) {
							pair.close();
							pair = null;
						}
						try {
							Thread.sleep(5);
						} catch (InterruptedException i2) {
							return;
						}
					}
				}
			});
			thread.start();
			threads.add(thread);
		}
		for (Thread thread : threads)
			thread.join();
	}

	static int prepared() throws Exception {
		int n = 0;

		for (PGXADataSource server : servers)
			try (Connection c = server.getConnection(); Statement s = c.createStatement();
					ResultSet r = s.executeQuery("SELECT count(*) FROM pg_prepared_xacts")) {
				r.next();
				n += r.getInt(1);
			}
		return n;
	}

	static void recover() throws Exception {
		RecoveryManager manager = RecoveryManager.manager(RecoveryManager.DIRECT_MANAGEMENT);
		XAConnection[] xa = {servers[0].getXAConnection(), servers[1].getXAConnection()};
		XAResource[] resources = {xa[0].getXAResource(), xa[1].getXAResource()};

		manager.initialize();
		for (RecoveryModule module : manager.getModules())
			if (module instanceof XARecoveryModule)
				((XARecoveryModule) module).addXAResourceRecoveryHelper(new XAResourceRecoveryHelper() {
					public boolean initialise(String p) {
						return true;
					}

					public XAResource[] getXAResources() {
						return resources;
					}
				});
		int left = prepared();
		System.out.println("to recover " + left);
		for (int i = 0; i < 10 && (i < 2 || left > 0); i++) {
			manager.scan();
			left = prepared();
		}
		System.out.println("left " + left);
	}
}
