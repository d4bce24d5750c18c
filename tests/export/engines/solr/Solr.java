import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/**
 * A Solr node with one empty core; prints its port, and stops when its input ends. Arguments: an empty folder, and the
 * class of the query parser ltr.
 */
public class Solr {
  static final String SCHEMA =
      "<schema name='shop' version='1.6'>"
          + "<fieldType name='string' class='solr.StrField' sortMissingLast='true' docValues='true'/>"
          + "<fieldType name='boolean' class='solr.BoolField' sortMissingLast='true'/>"
          + "<fieldType name='pdouble' class='solr.DoublePointField' docValues='true'/>"
          + "<fieldType name='pdate' class='solr.DatePointField' docValues='true'/>"
          + "<field name='id' type='string' indexed='true' stored='true' required='true'/>"
          + "<uniqueKey>id</uniqueKey></schema>";
  static final String CONFIG =
      "<config><luceneMatchVersion>9.12</luceneMatchVersion>"
          + "<directoryFactory name='DirectoryFactory' class='solr.ByteBuffersDirectoryFactory'/>"
          + "<indexConfig><lockType>single</lockType></indexConfig>"
          + "<schemaFactory class='ManagedIndexSchemaFactory'>"
          + "<bool name='mutable'>true</bool><str name='managedSchemaResourceName'>managed-schema.xml</str>"
          + "</schemaFactory>"
          + "<requestHandler name='/select' class='solr.SearchHandler'/>";

  public static void main(String[] arguments) throws Exception {
    Path home = Path.of(arguments[0]).toAbsolutePath();
    Path conf = Files.createDirectories(home.resolve("shop/conf"));
    Files.writeString(home.resolve("solr.xml"), "<solr/>");
    Files.writeString(home.resolve("shop/core.properties"), "name=shop\n");
    Files.writeString(conf.resolve("managed-schema.xml"), SCHEMA);
    String ltr = arguments.length > 1 ? "<queryParser name='ltr' class='" + arguments[1] + "'/>" : "";
    Files.writeString(conf.resolve("solrconfig.xml"), CONFIG + ltr + "</config>");
    JettySolrRunner node = new JettySolrRunner(home.toString(), JettyConfig.builder().setPort(0).build());
    node.start();
    System.out.println("PORT " + node.getLocalPort());
    while (System.in.read() >= 0) {}
    node.stop();
    System.exit(0);
  }
}
