import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/**
 * An OpenSearch node without an index; prints its port, and stops when its input ends. Arguments: an empty folder, and
 * the classes of further plugins.
 */
public class OpenSearch {
  static class Started extends Node {
    Started(Settings settings, Collection<Class<? extends Plugin>> plugins) {
      super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "rankrls"), plugins, false);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Settings settings =
        Settings.builder()
            .put("path.home", arguments[0])
            .put("cluster.name", "rankrls")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0")
            .put("transport.port", "0")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
    List<Class<? extends Plugin>> plugins =
        new ArrayList<>(List.of(Netty4Plugin.class, PainlessPlugin.class, CommonAnalysisPlugin.class));
    for (int i = 1; i < arguments.length; i++) {
      plugins.add(Class.forName(arguments[i]).asSubclass(Plugin.class));
    }
    Started node = new Started(settings, plugins);
    node.start();
    int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
    System.out.println("PORT " + port);
    while (System.in.read() >= 0) {}
    node.close();
    System.exit(0);
  }
}
