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
import java.io.File;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.XAConnection;
import javax.transaction.xa.XAResource;
import org.postgresql.xa.PGXADataSource;

/*
 * Transfers between accounts on two servers, each in a transaction of Narayana's over both; or TPC-C over several servers
 * (Warehouses).
 *
 *	Transfers STORE PORT PORT load FIRST SECONDS	prints "done N" when transfer N has been committed, until there is a file "stop"
 *	Transfers STORE PORT ... warehouses FIRST SECONDS WAREHOUSES ITEMS CUSTOMERS	prints what was paid and ordered
 *	Transfers STORE PORT ... recover				ends what was begun, as a manager that starts again does
 */
public class Transfers {
	static final int ACCOUNTS = 500;
	static final int THREADS = 6;
	static PGXADataSource[] servers;

	/* what is done again and again; the answer is printed when it has been committed */
	interface Work {
		String run(Branches branches, long number) throws Exception;
	}

	public static void main(String[] args) throws Exception {
		int n = 1;

		while (args[n].matches("\\d+"))
			n++;
		servers = new PGXADataSource[n - 1];
		for (int i = 0; i < servers.length; i++) {
			servers[i] = new PGXADataSource();
			servers[i].setServerNames(new String[] {"127.0.0.1"});
			servers[i].setPortNumbers(new int[] {Integer.parseInt(args[1 + i])});
			servers[i].setDatabaseName("postgres");
			servers[i].setUser("postgres");
			servers[i].setSocketTimeout(20);
		}
		configure(args[0]);
		if (args[n].equals("load"))
			load(Transfers::transfer, Long.parseLong(args[n + 1]), Integer.parseInt(args[n + 2]));
		else if (args[n].equals("warehouses"))
			load(new Warehouses(servers.length, Integer.parseInt(args[n + 3]), Integer.parseInt(args[n + 4]), Integer.parseInt(args[n + 5])),
				Long.parseLong(args[n + 1]), Integer.parseInt(args[n + 2]));
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

	/* a thread's connections, one to each server, made anew after an error */
	static class Branches {
		final TransactionManager tm;
		final XAConnection[] xa = new XAConnection[servers.length];
		final Connection[] connection = new Connection[servers.length];
		final boolean[] enlisted = new boolean[servers.length];

		Branches(TransactionManager tm) throws Exception {
			this.tm = tm;
			for (int i = 0; i < servers.length; i++) {
				xa[i] = servers[i].getXAConnection();
				connection[i] = xa[i].getConnection();
				try (Statement s = connection[i].createStatement()) {
					s.execute("SET lock_timeout = '300ms'");
				}
			}
		}

		/* a server takes part when it is first asked for something; if only one does, it is committed without being prepared */
		Connection on(int i) throws Exception {
			if (!enlisted[i])
				tm.getTransaction().enlistResource(xa[i].getXAResource());
			enlisted[i] = true;
			return connection[i];
		}

		String transaction(Work work, long number) throws Exception {
			String done;

			tm.begin();
			Arrays.fill(enlisted, false);
			try {
				done = work.run(this, number);
				if (number % 50 == 0)
					throw new IllegalStateException("changed my mind");
			} catch (Exception e) {
				tm.rollback();
				throw e;
			}
			tm.commit();
			return done;
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

	static String transfer(Branches branches, long number) throws Exception {
		ThreadLocalRandom random = ThreadLocalRandom.current();
		long amount = random.nextLong(-100, 100);

		/* the kinds of tables and the servers in one order, so there is no deadlock that nobody sees */
		for (int i = 0; i < 2; i++) {
			for (String table : new String[] {"account", "cold"})
				try (PreparedStatement s = branches.on(i).prepareStatement(
						"UPDATE " + table + " SET balance = balance + ? WHERE id = ?")) {
					s.setLong(1, i == 0 ? amount : -amount);
					s.setInt(2, random.nextInt(ACCOUNTS) + 1);
					if (s.executeUpdate() != 1)
						throw new IllegalStateException("no account");
				}
			try (PreparedStatement s = branches.on(i).prepareStatement("INSERT INTO transfer VALUES (?, ?)")) {
				s.setLong(1, number);
				s.setLong(2, amount);
				s.executeUpdate();
			}
		}
		return "done " + number;
	}

	static void load(Work work, long first, int seconds) throws Exception {
		TransactionManager tm = com.arjuna.ats.jta.TransactionManager.transactionManager();
		AtomicLong numbers = new AtomicLong(first);
		long end = System.nanoTime() + seconds * 1_000_000_000L;
		File stop = new File("stop");
		List<Thread> threads = new ArrayList<>();

		for (int i = 0; i < THREADS; i++) {
			Thread thread = new Thread(() -> {
				Branches branches = null;
				while (System.nanoTime() < end && !stop.exists()) {
					long number = numbers.incrementAndGet();
					try {
						if (branches == null)
							branches = new Branches(tm);
						String done = branches.transaction(work, number);
						/* one write, so none is torn by a kill */
						synchronized (System.out) {
							System.out.write((done + "\n").getBytes());
							System.out.flush();
						}
					} catch (Exception e) {
						System.err.println(number + ": " + e);
						if (branches != null && !(e instanceof IllegalStateException)) {
							branches.close();
							branches = null;
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
		XAResource[] resources = new XAResource[servers.length];

		for (int i = 0; i < servers.length; i++)
			resources[i] = servers[i].getXAConnection().getXAResource();
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
