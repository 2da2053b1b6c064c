import java.io.FileInputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider;
import org.verapdf.pdfa.Foundries;
import org.verapdf.pdfa.PDFAParser;
import org.verapdf.pdfa.PDFAValidator;
import org.verapdf.pdfa.flavours.PDFAFlavour;
import org.verapdf.pdfa.results.TestAssertion;
import org.verapdf.pdfa.results.ValidationResult;

/** Asks veraPDF whether files keep to PDF/UA-1 (ISO 14289-1); ends with status 1 where one does not. */
public class CheckPdf {
    public static void main(String[] files) throws Exception {
        VeraGreenfieldFoundryProvider.initialise();
        boolean good = true;
        for (String file : files) {
            try (InputStream bytes = new FileInputStream(file);
                    PDFAParser parser = Foundries.defaultInstance().createParser(bytes, PDFAFlavour.PDFUA_1);
                    PDFAValidator validator =
                            Foundries.defaultInstance().createValidator(PDFAFlavour.PDFUA_1, false)) {
                ValidationResult found = validator.validate(parser);
                good &= found.isCompliant();
                System.out.println(file + ": " + (found.isCompliant() ? "PDF/UA-1" : "not PDF/UA-1") + ", "
                        + found.getTotalAssertions() + " checks");
                List<String> told = new ArrayList<>();
                for (TestAssertion each : found.getTestAssertions()) {
                    String text = "  " + each.getRuleId().getClause() + ": " + each.getMessage() + " (" + each.getLocation().getContext() + ")";
                    if (each.getStatus() == TestAssertion.Status.FAILED && !told.contains(text)) told.add(text);
                }
                told.stream().limit(20).forEach(System.out::println);
            }
        }
        System.exit(good ? 0 : 1);
    }
}
