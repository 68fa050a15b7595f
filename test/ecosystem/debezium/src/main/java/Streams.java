import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/*
 * Debezium's embedded engine, whose events are applied to the tables of the same names in another database:
 *
 *	Streams SOURCE-PORT TARGET-PORT TARGET-DATABASE OFFSETS-FILE
 *
 * A transaction of the source is one of the target, in which a row says how far that has come; what Debezium has
 * twice after a kill, since its offsets had not been written, is known by the position of the transaction's commit.
 */
public class Streams {
	static final ObjectMapper json = new ObjectMapper();
	static final List<JsonNode[]> pending = new ArrayList<>();	/* key and value of a transaction's events */
	static final Map<String, Map<String, String>> tables = new LinkedHashMap<>();
	static Connection target;
	static long done;
	static boolean copying;

	public static void main(String[] args) throws Exception {
		target = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + args[1] + "/" + args[2], "postgres", "");
		try (Statement s = target.createStatement()) {
			ResultSet r = s.executeQuery("SELECT lsn FROM applied");
			r.next();
			done = r.getLong(1);
			r = s.executeQuery("SELECT relname, attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
				+ " WHERE relkind = 'r' AND (relname LIKE 'hot%' OR relname LIKE 'bag%') AND attnum > 0");
			while (r.next())
				tables.computeIfAbsent(r.getString(1), t -> new LinkedHashMap<>()).put(r.getString(2), r.getString(3));
		}
		target.setAutoCommit(false);

		Properties p = new Properties();
		String[][] settings = {
			{"name", "streams"}, {"connector.class", "io.debezium.connector.postgresql.PostgresConnector"},
			{"offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"}, {"offset.storage.file.filename", args[3]},
			{"offset.flush.interval.ms", "0"}, {"database.hostname", "127.0.0.1"}, {"database.port", args[0]}, {"database.user", "postgres"},
			{"database.password", ""}, {"database.dbname", "postgres"}, {"topic.prefix", "t"}, {"plugin.name", "pgoutput"}, {"slot.name", "debezium"},
			{"table.include.list", "public.(hot|bag)_(heap|mot)"}, {"publication.autocreate.mode", "filtered"}, {"provide.transaction.metadata", "true"},
			{"tombstones.on.delete", "false"}, {"decimal.handling.mode", "string"}, {"snapshot.mode", "initial"}, {"poll.interval.ms", "50"},
			{"key.converter.schemas.enable", "false"}, {"value.converter.schemas.enable", "false"}, {"errors.max.retries", "0"}};
		for (String[] setting : settings)
			p.setProperty(setting[0], setting[1]);
		DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class).using(p)
			.using((ok, message, error) -> {
				System.err.println(message + " " + error);
				if (error != null)
					error.printStackTrace();
			})
			.notifying((records, committer) -> {
				try {
					for (ChangeEvent<String, String> record : records)
						if (take(record))
							committer.markProcessed(record);
					if (copying)
						target.commit();
					committer.markBatchFinished();
				} catch (Exception e) {
					e.printStackTrace();
					Runtime.getRuntime().halt(2);
				}
			}).build();
		engine.run();
		Runtime.getRuntime().halt(1);
	}

	/* true: all so far has been applied */
	static boolean take(ChangeEvent<String, String> record) throws Exception {
		JsonNode value = json.readTree(record.value());
		JsonNode key = record.key() == null ? null : json.readTree(record.key());

		if (value.has("status")) {
			if (value.get("status").asText().equals("BEGIN")) {
				pending.clear();
				return false;
			}
			long commit = Long.parseLong(value.get("id").asText().split(":")[1]);

			if (commit > done && !pending.isEmpty()) {
				for (JsonNode[] event : pending)
					apply(event[0], event[1]);
				try (PreparedStatement s = target.prepareStatement("UPDATE applied SET lsn = ?")) {
					s.setLong(1, commit);
					s.executeUpdate();
				}
				target.commit();
				done = commit;
			}
			pending.clear();
			copying = false;
			return true;
		}
		if (value.get("op").asText().equals("r")) {
			copying = true;
			apply(key, value);
			return true;
		}
		pending.add(new JsonNode[] {key, value});
		return false;
	}

	static String text(JsonNode value) {
		if (value.isNull())
			return null;
		if (!value.isArray())
			return value.asText();
		StringBuilder array = new StringBuilder("{");
		for (JsonNode element : value)
			array.append(array.length() > 1 ? "," : "").append(element.isNull() ? "NULL" : element.asText());
		return array.append("}").toString();
	}

	static String typeOf(String table, String column, JsonNode value) throws Exception {
		String type = tables.get(table).get(column);

		if (type == null) {
			type = value.isNumber() ? "int" : "text";
			try (Statement s = target.createStatement()) {
				s.execute("ALTER TABLE " + table + " ADD COLUMN " + column + " " + type);
			}
			tables.get(table).put(column, type);
		}
		return type;
	}

	/* a row's columns, each with "?::type", and their values into "values" */
	static Map<String, String> columns(String table, JsonNode row, List<String> values) throws Exception {
		Map<String, String> columns = new LinkedHashMap<>();

		for (Iterator<String> names = row.fieldNames(); names.hasNext();) {
			String name = names.next();
			JsonNode value = row.get(name);

			/* a column that has no value yet may come later */
			if (value.isNull() && !tables.get(table).containsKey(name))
				continue;
			columns.put(name, "?::" + typeOf(table, name, value));
			values.add(text(value));
		}
		return columns;
	}

	static String list(Map<String, String> columns, String between, String operator) {
		List<String> list = new ArrayList<>();

		columns.forEach((name, mark) -> list.add(name + operator + mark));
		return String.join(between, list);
	}

	static void apply(JsonNode key, JsonNode value) throws Exception {
		String table = value.get("source").get("table").asText();
		String op = value.get("op").asText();
		List<String> values = new ArrayList<>();
		String sql;

		if (op.equals("c") || op.equals("r")) {
			Map<String, String> row = columns(table, value.get("after"), values);

			sql = "INSERT INTO " + table + " (" + String.join(", ", row.keySet()) + ") VALUES (" + String.join(", ", row.values()) + ")";
		} else {
			String set = op.equals("u") ? " SET " + list(columns(table, value.get("after"), values), ", ", " = ") : "";
			int before = values.size();
			Map<String, String> row = columns(table, key != null ? key : value.get("before"), values);

			/* (an index on "id" finds it) */
			for (Iterator<String> i = row.keySet().iterator(); i.hasNext(); before++) {
				String name = i.next();

				if (values.get(before) == null) {
					values.remove(before--);
					row.put(name, "NULL");
				}
			}
			String where = list(row, " AND ", " = ").replace("= NULL", "IS NULL");

			/* one row, since a table without a key may have several that are the same */
			sql = (op.equals("u") ? "UPDATE " + table + set : "DELETE FROM " + table)
				+ " WHERE ctid = (SELECT ctid FROM " + table + " WHERE " + where + " LIMIT 1)";
		}
		try (PreparedStatement s = target.prepareStatement(sql)) {
			for (int i = 0; i < values.size(); i++)
				s.setString(i + 1, values.get(i));
			if (s.executeUpdate() != 1)
				throw new Exception("not one row: " + s + " of " + value);
		}
	}
}
