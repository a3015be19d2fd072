import com.zaxxer.hikari.*;
import java.io.*;
import java.sql.*;
import java.util.*;
import org.postgresql.*;
import org.postgresql.copy.CopyManager;

public class Jdbc {
  static final String BOUND = "SELECT dp_count(count(*), ?) FROM people WHERE grp = ?";
  static final String SETTING = "SELECT noisy(count(*), 4) FROM people";
  static int n;

  static double epsilon() { return Math.round((Integer.parseInt(System.getenv("DP_BASE")) + ++n / 10000.0) * 10000) / 10000.0; }

  static void claimed(double epsilon, String source, int times, Object... params) {
    StringJoiner list = new StringJoiner(", ");
    for (Object p : params) list.add("\"" + p + "\"");
    System.out.printf(Locale.ROOT, "{\"epsilon\": %s, \"source\": \"%s\", \"times\": %d, \"params\": [%s]}%n", epsilon, source, times, list);
  }

  static void sent(double epsilon, Object... params) { claimed(epsilon, "argument", 1, params); }

  static void setting(double epsilon, Object... params) { claimed(epsilon, "setting", 1, params); }

  static void read(PreparedStatement s) throws SQLException { try (ResultSet r = s.executeQuery()) { while (r.next()); } }

  static void read(Connection c, String sql) throws SQLException { try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) { while (r.next()); } }

  public static void main(String[] args) throws Exception {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    for (String mode : new String[] {"extended", "simple", "extendedForPrepared", "extendedCacheEverything"}) run(mode);
    double e = epsilon();
    Properties p = properties("extended");
    p.put("options", "-c dp.epsilon=" + e);
    try (Connection c = DriverManager.getConnection(url(), p)) { read(c, SETTING); }
    setting(e);
  }

  static String url() { return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"); }

  static Properties properties(String mode) {
    Properties p = new Properties();
    p.put("user", System.getenv("PGUSER"));
    p.put("password", System.getenv("PGPASSWORD"));
    p.put("sslmode", "disable");
    p.put("connectTimeout", "0");
    p.put("ApplicationName", System.getenv("PGAPPNAME"));
    p.put("preferQueryMode", mode);
    p.put("prepareThreshold", "3");
    p.put("autosave", mode.equals("extendedForPrepared") ? "always" : "never"); // a savepoint before each statement of a transaction
    return p;
  }

  static void run(String mode) throws Exception {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url());
    config.setDataSourceProperties(properties(mode));
    config.setMaximumPoolSize(2);
    config.setConnectionTimeout(600_000); // the machine may be busy
    config.setValidationTimeout(600_000);
    boolean binds = !mode.equals("simple");
    try (HikariDataSource pool = new HikariDataSource(config)) {
      try (Connection c = pool.getConnection()) { arguments(c, binds); }
      try (Connection c = pool.getConnection()) { c.setAutoCommit(false); transactions(c, binds); }
      try (Connection c = pool.getConnection()) { settings(c, binds); }
    }
  }

  static Object[] when(boolean binds, Object... params) { return binds ? params : new Object[0]; }

  static void arguments(Connection c, boolean binds) throws Exception {
    double e = epsilon();
    read(c, "SELECT dp_count(count(*), " + e + ") FROM people");
    sent(e);
    try (PreparedStatement s = c.prepareStatement(BOUND)) {
      for (int i = 0; i < 6; i++) { // from the third one it has a name, and its parameters become binary
        e = epsilon();
        s.setDouble(1, e);
        s.setInt(2, i % 3);
        read(s);
        sent(e, when(binds, e, i % 3));
      }
      e = epsilon();
      s.setDouble(1, e);
      s.setInt(2, 1);
      for (int i = 0; i < 3; i++) read(s);
      claimed(e, "argument", 3, when(binds, e, 1));
    }
    try (PreparedStatement s = c.prepareStatement("SELECT dp_count(count(*), ?::float8) FROM people WHERE grp = ANY(?)")) {
      e = epsilon();
      s.setString(1, String.valueOf(e));
      s.setArray(2, c.createArrayOf("int4", new Object[] {0, 1}));
      read(s);
      sent(e, when(binds, e, "{\\\"0\\\",\\\"1\\\"}"));
    }
    try (PreparedStatement s = c.prepareStatement("SELECT dp_count(count(*), ?) FROM people")) {
      e = epsilon();
      s.setBigDecimal(1, new java.math.BigDecimal(String.valueOf(e)));
      read(s);
      sent(e, when(binds, e));
    }
    double first = epsilon(), second = epsilon();
    try (Statement s = c.createStatement()) {
      s.execute("SELECT dp_count(count(*), " + first + ") FROM people; SELECT 1; SELECT dp_count(count(*), " + second + ") FROM people");
      while (s.getMoreResults());
    }
    sent(first);
    sent(second);
    for (String sql : new String[] {"SELEC", "SELECT dp_count(count(*), 0.5) FROM nothing"}) try { read(c, sql); } catch (SQLException x) { }
  }

  static void transactions(Connection c, boolean binds) throws Exception {
    double e = epsilon();
    try (PreparedStatement s = c.prepareStatement("SELECT grp, dp_count(count(*), ?) FROM people GROUP BY grp")) {
      s.setFetchSize(1); // a portal that is suspended
      s.setDouble(1, e);
      read(s);
      sent(e, when(binds, e));
    }
    Savepoint point = c.setSavepoint();
    e = epsilon();
    try (PreparedStatement s = c.prepareStatement("SELECT dp_count(count(*), ?) / (count(*) - 50) FROM people")) {
      s.setDouble(1, e);
      read(s);
    } catch (SQLException x) {
      sent(e, when(binds, e));
      c.rollback(point);
    }
    try (PreparedStatement s = c.prepareStatement("INSERT INTO made VALUES (?)")) {
      try (Statement t = c.createStatement()) { t.execute("CREATE TEMP TABLE made (x int) ON COMMIT DROP"); }
      for (int i = 0; i < 50; i++) { s.setInt(1, i); s.addBatch(); }
      s.executeBatch();
    }
    e = epsilon();
    read(c, "SELECT dp_count(count(*), " + e + ") FROM people");
    sent(e);
    CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
    copy.copyIn("COPY made FROM STDIN", new StringReader("1\n2\n"));
    e = epsilon();
    copy.copyOut("COPY (SELECT dp_count(count(*), " + e + ") FROM people) TO STDOUT", new StringWriter());
    sent(e);
    e = epsilon();
    try (Statement s = c.createStatement()) { s.execute("SET LOCAL dp.epsilon = '" + e + "'"); }
    read(c, SETTING);
    setting(e);
    c.commit();
    e = epsilon();
    read(c, "SELECT dp_count(count(*), " + e + ") FROM people");
    sent(e);
    c.rollback();
  }

  static void settings(Connection c, boolean binds) throws Exception {
    double e = epsilon();
    try (PreparedStatement s = c.prepareStatement("SELECT set_config('dp.epsilon', ?, false)")) {
      s.setString(1, String.valueOf(e));
      read(s);
    }
    read(c, SETTING);
    setting(e);
    e = epsilon();
    try (PreparedStatement s = c.prepareStatement("SELECT set_config(?, ?, ?)")) {
      s.setString(1, "dp.epsilon");
      s.setString(2, String.valueOf(e));
      s.setBoolean(3, false);
      read(s);
    }
    read(c, SETTING);
    setting(e);
    c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
    c.setReadOnly(true);
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement(SETTING + " WHERE grp = ?")) {
      s.setInt(1, 1);
      read(s);
    }
    setting(e, when(binds, 1));
    double inner = epsilon();
    try (Statement s = c.createStatement()) { s.execute("SET dp.epsilon = '" + inner + "'"); }
    read(c, SETTING);
    setting(inner);
    c.rollback();
    read(c, SETTING + " WHERE grp = 2");
    setting(e);
    c.commit();
    try (Statement s = c.createStatement()) { s.execute("RESET dp.epsilon"); }
    c.commit();
  }
}
