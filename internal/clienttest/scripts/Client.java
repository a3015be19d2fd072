import java.io.*;
import java.sql.*;
import java.util.*;
import org.postgresql.*;
public class Client {
  static void note(Object... v) { System.out.println(Arrays.deepToString(v)); }
  public static void main(String[] args) throws Exception {
    Locale.setDefault(Locale.ROOT);
    for (String mode : new String[] {"simple", "extended"}) run(mode);
  }
  static void run(String mode) throws Exception {
    String[] autosave = mode.equals("simple") ? new String[] {"never"} : new String[] {"never", "always"};
    for (String a : autosave) run(mode, a);
  }
  static void run(String mode, String autosave) throws Exception {
    String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
    Properties p = new Properties();
    p.put("user", System.getenv("PGUSER")); p.put("password", System.getenv().getOrDefault("PGPASSWORD", "")); p.put("sslmode", "disable"); p.put("preferQueryMode", mode); p.put("prepareThreshold", "2"); p.put("autosave", autosave);
    try (Connection c = DriverManager.getConnection(url, p)) {
      note(mode);
      try (PreparedStatement s = c.prepareStatement("SELECT ?::int + 1, ?::text, ?::float8")) {
        for (int i = 0; i < 5; i++) { // at the second one it becomes a named statement, at the third binary
          s.setInt(1, i); s.setString(2, i % 2 == 0 ? null : "it's"); s.setDouble(3, i / 2.0);
          try (ResultSet r = s.executeQuery()) { r.next(); note(r.getInt(1), r.getString(2), r.getDouble(3)); }
        }
      }
      try (Statement s = c.createStatement()) {
        for (String sql : new String[] {"SELECT 1/0", "SELEC"}) try { s.execute(sql); } catch (SQLException e) { note(e.getSQLState()); }
      }
      note(c.isValid(10), c.unwrap(PGConnection.class).getParameterStatus("client_encoding"), c.unwrap(PGConnection.class).getParameterStatus("integer_datetimes"));
      try (PreparedStatement s = c.prepareStatement("SELECT true, 7::int8, 0.1::float8, 1.50::numeric, -123456789012345678901234567890.10::numeric, 'é', '2020-02-29'::date, NULL::float8, '\\x00ff'::bytea WHERE ?::int > 0")) {
        for (int i = 1; i < 5; i++) {
          s.setInt(1, i);
          try (ResultSet r = s.executeQuery()) {
            r.next();
            note(r.getBoolean(1), r.getLong(2), r.getDouble(3), r.getBigDecimal(4), r.getBigDecimal(5), r.getString(6), r.getDate(7), r.getObject(8), r.getBytes(9));
          }
        }
      }
      try (PreparedStatement s = c.prepareStatement("SELECT ?::bool, ?::numeric, ?::int8, ?::date")) {
        for (int i = 0; i < 4; i++) {
          s.setBoolean(1, true); s.setBigDecimal(2, new java.math.BigDecimal("2.50")); s.setLong(3, 1L << 40); s.setNull(4, Types.DATE);
          try (ResultSet r = s.executeQuery()) { r.next(); note(r.getBoolean(1), r.getBigDecimal(2), r.getLong(3), r.getDate(4)); }
        }
      }
      try (Statement s = c.createStatement()) {
        for (String sql : new String[] {"SET extra_float_digits = 3", "SET application_name = 'a client'", "DISCARD ALL", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "DEALLOCATE ALL", "BEGIN READ ONLY", "COMMIT"})
          note(sql, s.execute(sql), s.getUpdateCount());
        try (ResultSet r = s.executeQuery("SHOW TRANSACTION ISOLATION LEVEL")) { r.next(); note(r.getString(1), r.getMetaData().getColumnName(1)); }
        s.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE");
        // PostgreSQL only: temporary tables, several statements in a query
        s.execute("CREATE TEMP TABLE t (a serial, b text); INSERT INTO t (b) VALUES ('one'), ('two')");
        note(s.getMoreResults(), s.getUpdateCount());
        // end
      }
      c.setAutoCommit(false);
      // PostgreSQL only: changes
      try (PreparedStatement s = c.prepareStatement("INSERT INTO t (b) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
        for (int i = 0; i < 700; i++) { s.setString(1, "x".repeat(i)); s.addBatch(); }
        note(s.executeBatch().length);
      }
      c.commit();
      try (PreparedStatement s = c.prepareStatement("INSERT INTO t (a) VALUES (1 / ?)")) {
        for (int i = 3; i >= -1; i--) { s.setInt(1, i); s.addBatch(); }
        s.executeBatch();
      } catch (BatchUpdateException e) { note(e.getSQLState()); }
      c.rollback();
      // end
      try (PreparedStatement s = c.prepareStatement("SELECT a FROM generate_series(1, 702) a ORDER BY a")) {
        s.setFetchSize(100); // a portal that is suspended
        long sum = 0;
        try (ResultSet r = s.executeQuery()) { while (r.next()) sum += r.getInt(1); }
        note(sum);
      }
      Savepoint point = c.setSavepoint("here");
      try (Statement s = c.createStatement()) { s.execute("SELECT 1/0"); } catch (SQLException e) { c.rollback(point); note("savepoint"); }
      try (Statement s = c.createStatement()) { s.execute("SELEC"); } catch (SQLException e) { note(e.getSQLState()); }
      try (Statement s = c.createStatement()) { s.execute("SELECT 1"); } catch (SQLException e) { note(e.getSQLState()); }
      c.rollback();
      // PostgreSQL only: COPY
      var copy = c.unwrap(PGConnection.class).getCopyAPI();
      note(copy.copyIn("COPY t (a, b) FROM STDIN", new StringReader("1\tone\n2\t\\N\n")));
      try { copy.copyIn("COPY t (a, b) FROM STDIN", new StringReader("x\tbad\n")); } catch (SQLException e) { note(e.getSQLState()); c.rollback(); }
      StringWriter out = new StringWriter();
      copy.copyOut("COPY (SELECT count(*), sum(length(b)) FROM t) TO STDOUT", out); note(out.toString().trim());
      c.commit();
      // end
      try (Statement s = c.createStatement()) { s.setQueryTimeout(1); s.execute("SELECT pg_sleep(600)"); } catch (SQLException e) { note("timeout", e.getSQLState()); }
      c.rollback();
    }
  }
}
