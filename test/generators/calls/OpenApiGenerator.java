import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.EventsApi;
import org.openapitools.client.api.LedgersApi;
import org.openapitools.client.api.RegisterApi;
import org.openapitools.client.model.CreateLedgerRequest;
import org.openapitools.client.model.RegisterDeveloperRequest;
import org.openapitools.client.model.SandboxIdentity;

/** Calls a live node through the Java client of openapi-generator. */
public class OpenApiGenerator {
  private static ApiClient client() {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("BASE_URL"));
    return client;
  }

  private static SandboxIdentity register(String name) throws ApiException {
    RegisterDeveloperRequest request =
        new RegisterDeveloperRequest()
            .name(name)
            .email("office@acme.example")
            .region(RegisterDeveloperRequest.RegionEnum.EU);
    return new RegisterApi(client()).registerDeveloper(request, null, null).getSandbox();
  }

  public static void main(String[] arguments) throws ApiException {
    SandboxIdentity buyer = register("Buyer");
    SandboxIdentity supplier = register("Supplier");
    ApiClient client = client();
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + buyer.getApiKey()));
    LedgersApi ledgers = new LedgersApi(client);
    UUID opened =
        ledgers
            .createLedger(new CreateLedgerRequest().supplierSvcId(supplier.getSvcId()), null, null, null)
            .getId();
    String from = "2020-01-01T00:00:00Z";
    int count =
        new EventsApi(client)
            .listLedgerEvents(
                opened, 10, null, null, null, null, null, null, from, null, null, null, null, null, null, null, null, null)
            .getCount();
    if (count != 2) throw new AssertionError(count);
    try {
      ledgers.getLedger(UUID.fromString("0199aaaa-0000-7000-8000-00000000dead"), null, null);
      throw new AssertionError("an unknown ledger was found");
    } catch (ApiException error) {
      if (error.getCode() != 404 || !error.getResponseBody().contains("not_found")) throw error;
    }
  }
}
